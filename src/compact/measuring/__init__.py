"""What a way of keeping prompts small costs a session, and what it keeps; measured without a model as a judge.

recordings  a recorded session, and what its messages say
specifics   the strings of a text that an agent cannot guess
needs       what the rest of a session needed of what came before a cut
scores      how much of that a text holds
histories   the history of a session, call by call
policies    ways to keep prompts small: ours and plain ones; framework_rules has the defaults of frameworks
stand_in    stands in for a model that would write a summary
replay      makes every call of a session again, with a provider's cache
simulation  replays sessions under several policies, and adds up
recommendation  which of them to use, and why
"""
