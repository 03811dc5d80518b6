import { mount } from 'svelte'

import App from './App.svelte'
import './app.css'

const target = document.getElementById('app')
if (target === null) throw new Error('the page has no #app')
mount(App, { target })
