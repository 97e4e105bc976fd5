"""Making room in a long conversation without forgetting what matters: when (`timing`), what is kept word for word
(`keeping`), what a summary has to hold (`parts`), what it lost (`facts`), and when to stop trying (`breaker`).

All of it is pure: figures, messages and records come in, decisions go out. The agent asks the model and writes the log.
"""
