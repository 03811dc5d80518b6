#!/usr/bin/env node
// Starts Firefox for Playwright, which drives it by WebDriver BiDi. Debian's Firefox does not know all commands with which
// Playwright sets up a page (colours, sizes of screens): a command of `emulation` that Firefox does not know is answered as
// done. What a test emulates has no effect then, so the tests for Firefox emulate nothing.
import { spawn } from 'node:child_process'
import { createInterface } from 'node:readline'

import WebSocket, { WebSocketServer } from 'ws'

const LISTENING = /WebDriver BiDi listening on (ws:\/\/\S+)/
const firefox = spawn(process.env.FIREFOX ?? '/usr/bin/firefox-esr', process.argv.slice(2), { stdio: ['ignore', 'inherit', 'pipe'] })
firefox.on('exit', (code) => process.exit(code ?? 1))
for (const signal of ['SIGTERM', 'SIGINT', 'SIGHUP']) process.on(signal, () => firefox.kill(signal))

createInterface({ input: firefox.stderr }).on('line', (line) => {
  const found = LISTENING.exec(line)
  if (found === null) return void process.stderr.write(`${line}\n`)
  const server = new WebSocketServer({ host: '127.0.0.1', port: 0 })
  server.on('listening', () => process.stderr.write(`WebDriver BiDi listening on ws://127.0.0.1:${server.address().port}\n`))
  server.on('connection', (client, request) => bridge(client, `${found[1]}${request.url}`))
})

/** Carries messages between Playwright and Firefox. */
function bridge(client, url) {
  const browser = new WebSocket(url, { perMessageDeflate: false })
  const early = []
  /** Commands of `emulation` without an answer yet. */
  const emulating = new Set()
  client.on('message', (data) => {
    const text = data.toString()
    const command = JSON.parse(text)
    if (command.method?.startsWith('emulation.')) emulating.add(command.id)
    if (browser.readyState === WebSocket.OPEN) browser.send(text)
    else early.push(text)
  })
  browser.on('open', () => early.splice(0).forEach((text) => browser.send(text)))
  browser.on('message', (data) => {
    const text = data.toString()
    const answer = emulating.size > 0 ? JSON.parse(text) : {}
    const unknown = emulating.delete(answer.id) && answer.error === 'unknown command'
    client.send(unknown ? JSON.stringify({ type: 'success', id: answer.id, result: {} }) : text)
  })
  browser.on('close', () => client.close())
  client.on('close', () => browser.close())
  browser.on('error', () => client.close())
}
