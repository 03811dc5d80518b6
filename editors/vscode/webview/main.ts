import { mount } from 'svelte'

import './reset.css'
import '$web/app.css'
import App from './App.svelte'
import './editor.css'

/** The editor's theme, as the dashboard's styles name it. */
function paint(): void {
  const { classList } = document.body
  document.documentElement.dataset.theme = classList.contains('vscode-light') || classList.contains('vscode-high-contrast-light') ? 'light' : 'dark'
}
paint()
new MutationObserver(paint).observe(document.body, { attributes: true, attributeFilter: ['class'] })

const target = document.getElementById('app')
if (target === null) throw new Error('the page has no #app')
mount(App, { target })
