"""The viewer: a page on one's own machine that shows what compaction did, and what the model saw.

server        the application and the process that serves it
routes        one handler for each address
connections   closes those that send no request
access        who may send a request, and the security headers of every response
settings      host, port, token and cookie
json_http     request bodies and responses in JSON, and errors
static_files  serves the files of the page
source        reads everything from a store, and restores plans
pages/        the data of each page
live/         events that agents send, and the streams that follow them
static/       the page itself: HTML, CSS and JavaScript, without any library
"""
