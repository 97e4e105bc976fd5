"""Governors: from a list of messages to a request that is legal, within budget and stable for the cache."""
