// The TypeScript SDK 1.x as a client: does everything an MCP server offers, and prints what it saw as one JSON object.
// argv[2]: {"url", "headers"} or {"command", "args"}; argv[3]: "full", or "echo" for one call alone.
import { Client } from "@modelcontextprotocol/sdk/client/index.js";
import { StdioClientTransport } from "@modelcontextprotocol/sdk/client/stdio.js";
import { StreamableHTTPClientTransport } from "@modelcontextprotocol/sdk/client/streamableHttp.js";
import { CreateMessageRequestSchema, ElicitRequestSchema, ListRootsRequestSchema } from "@modelcontextprotocol/sdk/types.js";
import { tour } from "./tour.mjs";

const target = JSON.parse(process.argv[2]);
const transport = target.url
  ? new StreamableHTTPClientTransport(new URL(target.url), { requestInit: { headers: target.headers ?? {} } })
  : new StdioClientTransport({ command: target.command, args: target.args, env: process.env, stderr: "inherit" });
const client = new Client(
  { name: "suite-v1", version: "1.0.0" },
  { capabilities: { sampling: {}, elicitation: {}, roots: { listChanged: true } } },
);
const asked = [];
client.setRequestHandler(CreateMessageRequestSchema, async (request) => {
  asked.push(["sampling", request.params.messages[0].content.text]);
  return { model: "scripted", role: "assistant", content: { type: "text", text: "a sampled word" } };
});
client.setRequestHandler(ElicitRequestSchema, async (request) => {
  asked.push(["elicitation", request.params.message]);
  return { action: "accept", content: { name: "Nobody in particular" } };
});
client.setRequestHandler(ListRootsRequestSchema, async () => {
  asked.push(["roots"]);
  return { roots: [{ uri: "file:///tmp/root-of-the-suite", name: "the suite's" }] };
});
await client.connect(transport);
const report = await tour(client, {
  full: process.argv[3] === "full",
  call: (name, args, options) => client.callTool({ name, arguments: args }, undefined, options),
});
report.server = client.getServerVersion()?.name;
report.asked = asked.sort();
console.log(JSON.stringify(report));
await client.close();
process.exit(0);
