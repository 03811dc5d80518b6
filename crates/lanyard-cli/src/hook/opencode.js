// Written by `lanyard hook install opencode`; `lanyard hook uninstall opencode` takes it away.
// Asks Lanyard before and after each tool call: a stop is told as an error in the place of the call,
// words in front of its answer. Without a daemon nothing changes.
import { spawn } from "node:child_process"

const COMMAND = __COMMAND__
const WAIT_MS = __WAIT_MS__

function ask(input) {
  return new Promise((resolve) => {
    let text = ""
    let child
    try {
      child = spawn(COMMAND[0], COMMAND.slice(1), { stdio: ["pipe", "pipe", "ignore"] })
    } catch {
      return resolve({})
    }
    const timer = setTimeout(() => child.kill("SIGKILL"), WAIT_MS)
    const end = () => {
      clearTimeout(timer)
      try {
        resolve(JSON.parse(text))
      } catch {
        resolve({})
      }
    }
    child.on("error", end)
    child.on("close", end)
    child.stdout.on("data", (data) => (text += data))
    child.stdin.on("error", () => {})
    child.stdin.end(JSON.stringify(input))
  })
}

export const Lanyard = async ({ client, directory }) => {
  // A subagent is a session with a parent; asked for once.
  const parents = new Map()
  async function parent(id) {
    if (!parents.has(id)) {
      let found
      try {
        found = (await client.session.get({ path: { id } }))?.data?.parentID
      } catch {}
      parents.set(id, found)
    }
    return parents.get(id)
  }
  const seen = async (event, call) => ({
    hook_event_name: event,
    session_id: call.sessionID,
    parent_id: await parent(call.sessionID),
    cwd: directory,
    tool_name: call.tool,
    tool_use_id: call.callID,
  })
  return {
    "tool.execute.before": async (call) => {
      const said = await ask(await seen("tool.execute.before", call))
      // Terminated: the session itself is ended, not only this call.
      if (said.over) client.session.abort({ path: { id: call.sessionID } }).catch(() => {})
      if (said.deny) throw new Error(said.deny)
    },
    "tool.execute.after": async (call, output) => {
      const said = await ask(await seen("tool.execute.after", call))
      if (!said.blocks?.length) return
      if (Array.isArray(output.content)) {
        const words = said.blocks.map((text) => ({ type: "text", text }))
        output.content = said.withhold ? words : [...words, ...output.content]
      }
      if (typeof output.output === "string") {
        const words = said.blocks.join("\n\n")
        output.output = said.withhold ? words : words + "\n" + output.output
      }
    },
  }
}
