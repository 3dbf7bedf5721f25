"""The Chat Completions API of OpenAI."""
