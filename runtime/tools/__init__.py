"""Tools: what an agent can do. Import from the modules; nothing is loaded here, so that importing stays cheap."""
