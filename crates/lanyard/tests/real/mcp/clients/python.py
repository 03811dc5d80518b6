"""The Python SDK as a client: the tour of tour.mjs, printed in the same form.

argv[1]: {"url", "headers"} or {"command", "args"}; argv[2]: "full", or "echo" for one call alone;
argv[3]: "auto", "legacy" or a revision that it must be.
"""

import asyncio
import contextlib
import json
import os
import sys

import mcp
from mcp import types
from mcp.client.streamable_http import create_mcp_http_client, streamable_http_client

target, how, mode = json.loads(sys.argv[1]), sys.argv[2], sys.argv[3]
asked = []


async def sampled(_context, params):
    asked.append(["sampling", params.messages[0].content.text])
    content = types.TextContent(type="text", text="a sampled word")
    return types.CreateMessageResult(model="scripted", role="assistant", content=content)


async def elicited(_context, params):
    asked.append(["elicitation", params.message])
    return types.ElicitResult(action="accept", content={"name": "Nobody in particular"})


async def roots(_context):
    asked.append(["roots"])
    return types.ListRootsResult(roots=[types.Root(uri="file:///tmp/root-of-the-suite", name="the suite's")])


def plain(blocks):
    return [block.model_dump(mode="json", by_alias=True, exclude_none=True) for block in blocks]


def texts(result):
    return [block.text for block in result.content]


async def settled(client):
    """As in tour.mjs."""
    before = []
    for _ in range(50):
        # A list that the client keeps would never change.
        listed = await client.session.list_tools()
        now = sorted(tool.name for tool in listed.tools)
        if now and now == before:
            return now
        before = now
        await asyncio.sleep(0.1)
    return before


async def tour(client):
    report = {"tools": await settled(client)}
    report["echo"] = plain((await client.call_tool("echo", {"message": "hello there"})).content)
    if how != "full":
        return report
    report["resources"] = sorted(str(one.uri) for one in (await client.list_resources()).resources)
    read = await client.read_resource(report["resources"][0])
    report["resource"] = [
        {"uri": str(one.uri), "mimeType": one.mime_type, "size": len(one.text)} for one in read.contents
    ]
    listed = await client.list_resource_templates()
    report["templates"] = sorted(one.uri_template for one in listed.resource_templates)
    report["prompts"] = sorted(one.name for one in (await client.list_prompts()).prompts)
    report["prompt"] = plain((await client.get_prompt("simple-prompt")).messages)
    ref = types.PromptReference(type="ref/prompt", name="completable-prompt")
    completed = await client.complete(ref, {"name": "department", "value": "E"})
    report["completion"] = completed.completion.values
    result = await client.call_tool("get-structured-content", {"location": "Chicago"})
    keys = sorted((result.structured_content or {}).keys())
    report["structured"] = {"keys": keys, "blocks": len(result.content)}
    result = await client.call_tool("trigger-sampling-request", {"prompt": "say something", "maxTokens": 10})
    report["sampling"] = texts(result)
    report["elicitation"] = texts(await client.call_tool("trigger-elicitation-request", {}))
    report["roots"] = texts(await client.call_tool("get-roots-list", {}))
    steps = []

    async def progressed(progress, total, _message):
        steps.append([progress, total])

    long = {"duration": 0.4, "steps": 4}
    result = await client.call_tool("trigger-long-running-operation", long, progress_callback=progressed)
    report["long"] = texts(result)
    report["progress"] = steps[:3]
    report["cancelled"] = False
    try:
        long = client.call_tool("trigger-long-running-operation", {"duration": 20, "steps": 200})
        await asyncio.wait_for(long, 0.3)
    except TimeoutError:
        report["cancelled"] = True
    report["after"] = plain((await client.call_tool("echo", {"message": "still here"})).content)
    try:
        result = await client.call_tool("no-such-tool", {})
        report["unknown"] = {"isError": result.is_error, "said": texts(result)}
    except mcp.MCPError as error:
        report["unknown"] = {"code": error.error.code}
    return report


async def main():
    async with contextlib.AsyncExitStack() as stack:
        if "url" in target:
            http = await stack.enter_async_context(create_mcp_http_client(headers=target.get("headers") or {}))
            server = streamable_http_client(target["url"], http_client=http)
        else:
            server = mcp.StdioServerParameters(
                command=target["command"], args=target["args"], env=dict(os.environ)
            )
        client = await stack.enter_async_context(
            mcp.Client(
                server,
                mode=mode,
                sampling_callback=sampled,
                elicitation_callback=elicited,
                list_roots_callback=roots,
            )
        )
        report = await tour(client)
        report["server"] = client.server_info.name if client.server_info else None
        report["revision"] = client.protocol_version
        report["asked"] = sorted(asked)
        print(json.dumps(report), flush=True)


asyncio.run(main())
