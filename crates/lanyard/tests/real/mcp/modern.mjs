// An MCP server of revision 2026-07-28, made with the TypeScript SDK 2.x: what it wants to know of the client it asks for
// with an `input_required` result. Its names are those of the reference server, so that one tour fits both.
// argv[2]: "http" (on 127.0.0.1, a port of the system's choice, said on the first line) or "stdio";
// argv[3]: "only" refuses clients of older revisions.
import { createServer } from "node:http";
import { McpServer, ResourceTemplate, acceptedContent, completable, createMcpHandler, inputRequired } from "@modelcontextprotocol/server";
import { serveStdio } from "@modelcontextprotocol/server/stdio";
import { toNodeHandler } from "@modelcontextprotocol/node";
import { z } from "zod";

const said = (text) => ({ content: [{ type: "text", text }] });
const pause = (millis, signal) =>
  new Promise((resolve, reject) => {
    const timer = setTimeout(resolve, millis);
    signal?.addEventListener("abort", () => (clearTimeout(timer), reject(new Error("cancelled"))));
  });

function build() {
  const server = new McpServer({ name: "suite/modern", version: "1.0.0" });
  const tool = (name, inputSchema, run, more = {}) =>
    server.registerTool(name, { description: name, inputSchema: z.object(inputSchema), ...more }, run);

  tool("echo", { message: z.string() }, async ({ message }) => said(`Echo: ${message}`));
  const weather = { temperature: 33, conditions: "Cloudy", humidity: 82 };
  tool(
    "get-structured-content",
    { location: z.string() },
    async () => ({ ...said(JSON.stringify(weather)), structuredContent: weather }),
    { outputSchema: z.object({ temperature: z.number(), conditions: z.string(), humidity: z.number() }) },
  );
  tool("trigger-long-running-operation", { duration: z.number(), steps: z.number() }, async ({ duration, steps }, ctx) => {
    const progressToken = ctx.mcpReq._meta?.progressToken;
    for (let step = 1; step <= steps; step += 1) {
      await pause((duration * 1000) / steps, ctx.mcpReq.signal);
      if (progressToken === undefined) continue;
      const params = { progress: step, total: steps, progressToken };
      await ctx.mcpReq.notify({ method: "notifications/progress", params });
    }
    return said(`Long running operation completed. Duration: ${duration} seconds, Steps: ${steps}.`);
  });

  const asks = (name, inputSchema, key, request, tell) =>
    tool(name, inputSchema, async (args, ctx) => {
      const given = ctx.mcpReq.inputResponses?.[key];
      if (given === undefined) return inputRequired({ inputRequests: { [key]: request(args) } });
      return said(tell(given, ctx.mcpReq.inputResponses));
    });
  const message = (text) => ({ role: "user", content: { type: "text", text } });
  asks(
    "trigger-sampling-request",
    { prompt: z.string(), maxTokens: z.number() },
    "word",
    ({ prompt, maxTokens }) => inputRequired.createMessage({ messages: [message(prompt)], maxTokens }),
    (given) => `LLM sampling result: ${given.content.text}`,
  );
  asks(
    "trigger-elicitation-request",
    {},
    "name",
    () => inputRequired.elicit({ message: "Who is there?", requestedSchema: z.object({ name: z.string() }) }),
    (_given, all) => `Name: ${acceptedContent(all, "name")?.name}`,
  );
  asks("get-roots-list", {}, "roots", () => inputRequired.listRoots(), (given) => given.roots.map((root) => root.uri).join());

  server.registerResource("words", "suite://words", { mimeType: "text/plain" }, async (uri) => ({
    contents: [{ uri: uri.href, mimeType: "text/plain", text: "Words of the suite." }],
  }));
  const template = new ResourceTemplate("suite://words/{number}", { list: undefined });
  server.registerResource("numbered", template, { mimeType: "text/plain" }, async (uri, { number }) => ({
    contents: [{ uri: uri.href, mimeType: "text/plain", text: `Word ${number}.` }],
  }));
  server.registerPrompt("simple-prompt", { description: "simple" }, async () => ({
    messages: [message("This is a simple prompt without arguments.")],
  }));
  const department = completable(z.string(), (value) =>
    ["Engineering", "Sales"].filter((name) => name.startsWith(value)),
  );
  server.registerPrompt("completable-prompt", { description: "completed", argsSchema: z.object({ department }) }, async (args) => ({
    messages: [message(`About ${args.department}.`)],
  }));
  return server;
}

if (process.argv[2] === "stdio") {
  serveStdio(build);
} else {
  const handler = toNodeHandler(createMcpHandler(build, { legacy: process.argv[3] === "only" ? "reject" : "stateless" }));
  const server = createServer((request, response) => handler(request, response));
  server.listen(0, "127.0.0.1", () => console.log(`http://127.0.0.1:${server.address().port}/mcp`));
}
