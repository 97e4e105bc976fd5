"""The system prompt: five layers to named sections, cached by fingerprint, changed by patches (`runtime.sections`).

`PromptBuilder(workspace).build(channel, tools, profile)` gives the sections that should hold now.
"""
