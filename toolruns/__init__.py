"""A streaming tool call as a trajectory."""
