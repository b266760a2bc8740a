"""The MCP server: the store as eight tools, three resources and two prompts.

It has no logic of its own: arguments are checked, the core is called, and its answer is told in few words.
The library `mcp` is imported when a server is made and not before, since that takes most of a second.
"""
