"""Use the governors alone: a broken list of OpenAI messages in, a legal one within budget out.

Nothing of the runtime is needed, no network, no key: python examples/govern_a_list.py
"""

from governors import WIRES, Budget, TiktokenCounter, govern, load_vocabulary
from governors.wire import Abilities

call = {"id": "call_0", "type": "function", "function": {"name": "read_file", "arguments": '{"path": "notes.md"}'}}
history = [
    {"role": "system", "content": "You are a helpful assistant."},
    {"role": "user", "content": "Read my notes."},
    {"role": "assistant", "content": None, "tool_calls": [call]},
    {"role": "user", "content": "Are you still there?"},  # stands between the call and its result
    {"role": "tool", "tool_call_id": "call_0", "content": "milk, bread " * 40},
    {"role": "tool", "tool_call_id": "call_9", "content": "nobody asked for this"},
    {"role": "assistant", "content": None, "tool_calls": [call]},  # the same id again, and never answered
    {"role": "user", "content": "What was on the list?"},
]

load_vocabulary()
wire, abilities = WIRES["openai_chat"], Abilities()
decoded = wire.decode(history)
budget = Budget(window=2_000, max_output=500)
governed = govern(decoded.messages, budget=budget, counter=TiktokenCounter(), system=decoded.system)
payload = wire.encode(governed.messages, system=decoded.system, tools=(), abilities=abilities)

for message in payload["messages"]:
    print(f"{message['role']:<10} {str(message.get('content') or message.get('tool_calls'))[:90]}")
print(f"{governed.report.before} tokens before, {governed.report.after} after, budget {governed.report.budget}")
print(f"violations: {wire.check({'model': 'any', **payload}, abilities)}")
