"""More APIs that the scripted model speaks, each with the provider's own words for a prompt that does not fit.

responses   OpenAI's Responses
gemini      Gemini's generateContent
converse    Bedrock's Converse
streams     the answers of all of them as streams, but for
converse_stream  those of Converse, in the binary form of AWS
"""
