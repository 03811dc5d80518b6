// Stands before a stdio MCP server: writes down the tools that are called, and holds calls back while a file is there.
// argv: the file to write to, the file that holds, and the server's command.
import { spawn } from "node:child_process";
import { appendFileSync, existsSync } from "node:fs";
import { createInterface } from "node:readline";

const [record, hold, program, ...words] = process.argv.slice(2);
const server = spawn(program, words, { stdio: ["pipe", "inherit", "inherit"] });
server.on("exit", (code) => process.exit(code ?? 1));

/** Every line goes on in its order, a held one holds those after it. */
let before = Promise.resolve();

async function pass(line) {
  let message = {};
  try {
    message = JSON.parse(line);
  } catch {
    // The server says what it thinks of it.
  }
  if (message.method === "tools/call") {
    appendFileSync(record, `${message.params.name}\n`);
    while (existsSync(hold)) await new Promise((resolve) => setTimeout(resolve, 20));
  }
  server.stdin.write(`${line}\n`);
}

const lines = createInterface({ input: process.stdin });
lines.on("line", (line) => {
  before = before.then(() => pass(line));
});
lines.on("close", () => before.then(() => server.stdin.end()));
