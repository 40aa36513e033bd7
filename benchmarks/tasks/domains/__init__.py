"""The tasks' domains: what an agent does there all day, which facts come up on the way, and what needs them later.

    coding       an agent that works on a repository
    support      an agent at a support desk
    analysis     an agent that analyses data
    operations   an agent that runs services
    travel       an agent that books trips

Facts come up in results (files, tables, JSON, logs), in what people say in passing, in what the agent itself decides,
and in arguments of its calls; wordings vary, and things with similar names have values of the same shape. About a
third is corrected later.
"""
