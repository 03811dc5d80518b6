// The page of a session in an editor tab: its document, and the bridge between it and the daemon.
import { randomBytes } from 'node:crypto'

import * as vscode from 'vscode'

import type { Connection } from '../client/connection'
import { SseParser } from '../client/sse'
import { allowedHeaders, allowedPath, fromPage, UNDER_WAY_MAX, type FromPage, type PageRequest, type Shown, type ToPage } from './bridge'

type Do = Extract<FromPage, { type: 'do' }>

/** A strict policy: one script with a nonce, the page's own styles, images that the page holds itself, no network at all. */
function document(webview: vscode.Webview, folder: vscode.Uri): string {
  const nonce = randomBytes(16).toString('base64')
  const at = (name: string): string => webview.asWebviewUri(vscode.Uri.joinPath(folder, name)).toString()
  const policy = `default-src 'none'; script-src 'nonce-${nonce}'; style-src ${webview.cspSource}; img-src blob: data:; base-uri 'none'; form-action 'none'`
  return `<!doctype html>
<html lang="en">
<head>
<meta charset="utf-8">
<meta http-equiv="Content-Security-Policy" content="${policy}">
<meta name="viewport" content="width=device-width, initial-scale=1">
<title>Lanyard session</title>
<link rel="stylesheet" href="${at('session.css')}">
</head>
<body><div id="app"></div><script type="module" nonce="${nonce}" src="${at('session.js')}"></script></body>
</html>`
}

export class SessionPage implements vscode.Disposable {
  readonly #under = new Map<number, AbortController>()
  readonly #held: vscode.Disposable[]
  #shown: Shown | null = null
  #ready = false

  constructor(
    private readonly panel: vscode.WebviewPanel,
    extension: vscode.Uri,
    private readonly connection: Connection,
    private readonly act: (what: Do) => void,
  ) {
    const folder = vscode.Uri.joinPath(extension, 'dist', 'webview')
    panel.webview.options = { enableScripts: true, localResourceRoots: [folder] }
    this.#held = [panel.webview.onDidReceiveMessage((message: unknown) => this.#take(fromPage(message)))]
    panel.webview.html = document(panel.webview, folder)
  }

  dispose(): void {
    for (const one of this.#under.values()) one.abort()
    for (const one of this.#held) one.dispose()
  }

  show(shown: Omit<Shown, 'type'>): void {
    this.#shown = { type: 'show', ...shown }
    if (this.#ready) this.#post(this.#shown)
  }

  #post(message: ToPage): void {
    void this.panel.webview.postMessage(message)
  }

  #take(message: FromPage | null): void {
    switch (message?.type) {
      case 'ready':
        this.#ready = true
        if (this.#shown !== null) this.#post(this.#shown)
        break
      case 'request':
        void this.#request(message)
        break
      case 'open':
        void this.#stream(message.ref, message.path)
        break
      case 'close':
        this.#under.get(message.ref)?.abort()
        break
      case 'do':
        this.act(message)
        break
      case undefined:
        break
    }
  }

  async #request({ ref, method, path, headers, body }: PageRequest): Promise<void> {
    const allowed = this.#allowed(method, path)
    if (allowed === null || this.#under.size >= UNDER_WAY_MAX) {
      const title = allowed === null ? 'this tab may only ask about its own session' : 'too many requests are under way'
      this.#post({ type: 'answer', ref, status: 403, kind: 'application/json', body: JSON.stringify({ code: 'tab_refused', title, advice: 'use the dashboard', status: 403 }) })
      return
    }
    const stop = new AbortController()
    this.#under.set(ref, stop)
    try {
      const answer = await this.connection.http.raw(method, allowed, body ?? undefined, allowedHeaders(headers), stop.signal)
      this.#post({ type: 'answer', ref, status: answer.status, kind: answer.type, body: answer.body })
    } catch {
      this.#post({ type: 'failed', ref })
    } finally {
      this.#under.delete(ref)
    }
  }

  async #stream(ref: number, path: string): Promise<void> {
    const allowed = this.#allowed('GET', path)
    if (allowed === null || this.#under.size >= UNDER_WAY_MAX) {
      this.#post({ type: 'closed', ref })
      return
    }
    const stop = new AbortController()
    this.#under.set(ref, stop)
    const parser = new SseParser()
    try {
      await this.connection.http.stream(allowed, stop.signal, (piece) => {
        // The page watches for silence, and a heartbeat is a comment here.
        if (piece.startsWith(':')) this.#post({ type: 'frame', ref, data: '{"type":"heartbeat"}' })
        for (const event of parser.push(piece)) this.#post({ type: 'frame', ref, data: event.data })
      })
    } catch {
      // The page opens it again and is told why it may not.
    } finally {
      this.#under.delete(ref)
      this.#post({ type: 'closed', ref })
    }
  }

  #allowed(method: string, path: string): string | null {
    const session = this.#shown?.session ?? null
    return session === null ? null : allowedPath(method, path, session)
  }
}
