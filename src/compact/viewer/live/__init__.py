"""Events that agents send to the viewer, and the streams by which pages and programs follow them.

ingest     checks the events of a request, in the form that Ariadne takes
broadcast  sends frames to every subscriber of a stream
metrics    counts events, as Prometheus text
feed       puts these together, and watches the store for changes
"""
