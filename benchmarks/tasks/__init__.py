"""Whether an agent still reaches the end of its task when its prompts are compacted.

facts       what a step needs from far back, and the rule by which it is found in a prompt
steps       what a task is made of: what a person says, routine work, checks
writer      writes a task: chooses words, numbers and ids, and puts facts far away from their checks
domains/    the tasks themselves: coding, support, analysis, operations, travel
prompts     what a reader sees of a prompt
policies    what is sent of a history: all of it, Compact's prompt, the newest messages, …
loop        runs a scripted agent through a task
intervals   how sure a share is
results     outcomes of many tasks as tables and data
command     `make bench-tasks`
model_tasks, model_run   the same question asked of a real model: `python benchmarks/tasks model`
"""
