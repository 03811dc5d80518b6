// The TypeScript SDK 2.x as a client, which speaks 2026-07-28 where the server does. As v1.mjs; argv[4]: "auto",
// "legacy" or a revision that it must be.
import { Client, StreamableHTTPClientTransport } from "@modelcontextprotocol/client";
import { StdioClientTransport } from "@modelcontextprotocol/client/stdio";
import { tour } from "./tour.mjs";

const target = JSON.parse(process.argv[2]);
const mode = ["auto", "legacy"].includes(process.argv[4]) ? process.argv[4] : { pin: process.argv[4] };
const transport = target.url
  ? new StreamableHTTPClientTransport(new URL(target.url), { requestInit: { headers: target.headers ?? {} } })
  : new StdioClientTransport({ command: target.command, args: target.args, env: process.env, stderr: "inherit" });
const client = new Client(
  { name: "suite-v2", version: "1.0.0" },
  { capabilities: { sampling: {}, elicitation: { form: {} }, roots: {} }, versionNegotiation: { mode } },
);
const asked = [];
client.setRequestHandler("sampling/createMessage", async (request) => {
  asked.push(["sampling", request.params.messages[0].content.text]);
  return { model: "scripted", role: "assistant", content: { type: "text", text: "a sampled word" } };
});
client.setRequestHandler("elicitation/create", async (request) => {
  asked.push(["elicitation", request.params.message]);
  return { action: "accept", content: { name: "Nobody in particular" } };
});
client.setRequestHandler("roots/list", async () => {
  asked.push(["roots"]);
  return { roots: [{ uri: "file:///tmp/root-of-the-suite", name: "the suite's" }] };
});
await client.connect(transport);
const report = await tour(client, {
  full: process.argv[3] === "full",
  call: (name, args, options) => client.callTool({ name, arguments: args }, options),
});
report.server = client.getServerVersion()?.name;
report.revision = client.getNegotiatedProtocolVersion?.();
report.asked = asked.sort();
console.log(JSON.stringify(report));
await client.close();
process.exit(0);
