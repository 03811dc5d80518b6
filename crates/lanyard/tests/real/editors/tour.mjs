// What an editor does, with the SDK that editors use. Prints what it saw as one line of JSON.
import { spawn } from "node:child_process";
import { existsSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { Readable, Writable } from "node:stream";
import { setTimeout as rest } from "node:timers/promises";
import * as acp from "@agentclientprotocol/sdk/unstable";

const [lanyard, work] = process.argv.slice(2);
const { agent: on, client: here } = acp.methods;

// A `lanyard acp` and a client that is connected to it.
function editor() {
  const child = spawn(lanyard, ["acp", "--agent", "a"], { stdio: ["pipe", "pipe", "inherit"] });
  const updates = [];
  const asked = [];
  let answer = async () => ({ outcome: { outcome: "cancelled" } });
  const app = acp
    .client({ name: "tour" })
    .onNotification(here.session.update, ({ params }) => void updates.push(params))
    .onRequest(here.session.requestPermission, async ({ params, signal }) => {
      const question = { params, takenBack: false };
      signal.addEventListener("abort", () => (question.takenBack = true));
      asked.push(question);
      return answer(params, signal);
    });
  const stream = acp.ndJsonStream(Writable.toWeb(child.stdin), Readable.toWeb(child.stdout));
  const connection = app.connect(stream);
  const ended = new Promise((done) => child.once("exit", done));
  return {
    child, updates, asked, connection, ended,
    ask: (method, params) => connection.agent.request(method, params),
    tell: (method, params) => connection.agent.notify(method, params),
    answering(how) { answer = how; },
    prompt: (sessionId, text) =>
      connection.agent.request(on.session.prompt, { sessionId, prompt: [{ type: "text", text }] }),
    // Chunks of one message joined, the rest in a few words.
    story(sessionId) {
      const lines = [];
      for (const { update } of updates.filter((told) => told.sessionId === sessionId)) {
        const kind = update.sessionUpdate;
        if (kind.endsWith("_chunk")) {
          const who = kind.replace("agent_", "").replace("_message_chunk", "").replace("_chunk", "");
          const last = lines.at(-1);
          if (last?.id === update.messageId) last.text += update.content.text;
          else lines.push({ id: update.messageId, who, text: update.content.text });
        } else if (kind === "plan") {
          lines.push({ who: "plan", text: update.entries.map((entry) => entry.content).join(", ") });
        } else if (kind === "tool_call") {
          lines.push({ who: "call", text: `${update.title} ${update.status}` });
        } else {
          lines.push({ who: "done", text: update.status });
        }
      }
      return lines.map(({ who, text }) => `${who}: ${text}`);
    },
  };
}

async function until(done) {
  for (let tries = 0; tries < 3000; tries += 1) {
    if (await done()) return true;
    await rest(10);
  }
  return false;
}

const code = (work) => work.then(() => 0, (error) => error.code);
const touch = (name) => writeFileSync(join(work, name), "");
const there = (name) => until(() => existsSync(join(work, name)));

const first = editor();
const greeting = await first.ask(on.initialize, { protocolVersion: 1, clientCapabilities: {} });
const seen = { agent: greeting.agentInfo.name, version: greeting.protocolVersion };
const fresh = () => first.ask(on.session.new, { cwd: work, mcpServers: [] }).then((made) => made.sessionId);

const one = await fresh();
const done = await first.prompt(one, '/think hm\n/plan a | b\n/say hello world\n/tool read {"path": "/w/a"}\n/usage 12 3');
seen.first = { stop: done.stopReason, told: first.story(one), tokens: done.usage.totalTokens };

first.answering(async (params) => ({ outcome: { outcome: "selected", optionId: params.options[0].optionId } }));
await first.prompt(one, "/ask May I?");
const question = first.asked[0].params;
seen.permission = {
  asked: question.toolCall.title,
  options: question.options.map((option) => option.kind),
  said: first.story(one).at(-1).replace("message: ", ""),
};

const waiting = first.prompt(one, "/touch began\n/wait-file never");
await there("began");
await first.tell(on.session.cancel, { sessionId: one });
seen.cancelled = (await waiting).stopReason;

const second = editor();
await second.ask(on.initialize, { protocolVersion: 1, clientCapabilities: {} });
const two = await fresh();
await second.ask(on.session.resume, { sessionId: two, cwd: work, mcpServers: [] });
const busy = first.prompt(two, "/touch running\n/wait-file go");
await there("running");
seen.busy = await second.prompt(two, "/say me too").then(() => "", (error) => error.data.code);
touch("go");
await busy;
second.updates.length = 0;
await first.prompt(two, "/say seen by both");
await until(() => second.story(two).at(-1) === "message: seen by both");
seen.observed = second.story(two);

// Answered by the one while the other still thinks.
let release;
first.answering((_params, signal) => new Promise((done) => {
  release = () => done({ outcome: { outcome: "cancelled" } });
  signal.addEventListener("abort", release);
}));
second.answering(async (params) => ({ outcome: { outcome: "selected", optionId: params.options[0].optionId } }));
const elsewhere = await first.prompt(two, "/ask Whoever is first?");
await until(() => first.asked.at(-1).takenBack);
seen.elsewhere = { taken_back: first.asked.at(-1).takenBack, stop: elsewhere.stopReason };

const listed = await first.ask(on.session.list, { cwd: work });
seen.listed = listed.sessions.map((info) => info.sessionId).join() === [two, one].join();
const streamed = first.story(one).slice(0, 5);
second.updates.length = 0;
await second.ask(on.session.load, { sessionId: one, cwd: work, mcpServers: [] });
const loaded = second.story(one);
seen.loaded_as_streamed = loaded.slice(1, 6).join("|") === streamed.join("|") && loaded[0].startsWith("user: /think hm");
const fork = await first.ask(on.session.fork, { sessionId: one, cwd: work, mcpServers: [] });
seen.forked = (await first.prompt(fork.sessionId, "/say apart")).stopReason === "end_turn" && fork.sessionId !== one;
seen.unknown = await code(first.ask(on.session.load, { sessionId: "sess_nobody", cwd: work, mcpServers: [] }));
seen.not_offered = await code(first.ask(on.session.setMode, { sessionId: one, modeId: "plan" }));

// Killed in the middle of a turn, which goes on.
first.prompt(one, "/touch left\n/wait-file on\n/say finished alone").catch(() => {});
await there("left");
first.child.kill("SIGKILL");
await first.ended;
touch("on");
const finished = () => second.story(one).at(-1) === "message: finished alone";
seen.finished_without_us = await until(finished);
await second.ask(on.session.close, { sessionId: one });
await second.ask(on.session.resume, { sessionId: one, cwd: work, mcpServers: [] });
seen.resumed = (await second.prompt(one, "/say and on")).stopReason;
second.child.stdin.end();
await second.ended;
console.log(JSON.stringify(seen));
process.exit(0);
