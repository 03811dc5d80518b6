// The few marks agents write in, as a tree of plain text. Nothing of it is ever markup of the page.

export interface Span {
  as: 'text' | 'code' | 'bold' | 'em' | 'link'
  text: string
  href?: string
}

export type Block =
  | { as: 'p' | 'quote'; spans: Span[] }
  | { as: 'head'; level: number; spans: Span[] }
  | { as: 'code'; lang: string; text: string }
  | { as: 'list'; ordered: boolean; start: number; items: { depth: number; spans: Span[] }[] }
  | { as: 'table'; head: Span[][]; rows: Span[][][] }
  | { as: 'rule' }

// Every part is bounded, so that no text takes longer than its length.
const SPANS =
  /(`{1,2})([^`\n]{1,2000})\1|\*\*([^*\n]{1,1000})\*\*|(?<![\w*])\*([^*\s][^*\n]{0,500})\*(?![\w*])|\[([^\][\n]{1,300})\]\((https?:\/\/[^\s()<>]{1,2000})\)|https?:\/\/[^\s<>"'`\u27e6)\]]{1,2000}/g

export function spans(text: string): Span[] {
  const found: Span[] = []
  let from = 0
  for (const match of text.matchAll(SPANS)) {
    if (match.index > from) found.push({ as: 'text', text: text.slice(from, match.index) })
    const [all, , code, bold, em, label, href] = match
    from = match.index + all.length
    if (code !== undefined) found.push({ as: 'code', text: code })
    else if (bold !== undefined) found.push({ as: 'bold', text: bold })
    else if (em !== undefined) found.push({ as: 'em', text: em })
    else if (label !== undefined && href !== undefined) found.push({ as: 'link', text: label, href })
    else {
      // A sentence that ends with an address.
      const url = all.replace(/[.,;:!?*_]+$/, '')
      from -= all.length - url.length
      found.push({ as: 'link', text: url, href: url })
    }
  }
  if (from < text.length) found.push({ as: 'text', text: text.slice(from) })
  return found
}

const FENCE = /^ {0,3}(```+|~~~+) *([\w+#.-]{0,30})/
const ITEM = /^( {0,40})(?:[-*+•]|(\d{1,9})[.)]) +(.*)$/
const HEAD = /^(#{1,6}) +(.*)$/
const RULE = /^ {0,3}(?:-{3,80}|\*{3,80}|_{3,80}) *$/
const ROW = /^ *\|.*\| *$/
const DIVIDER = /^ *\|[ :|-]+\| *$/

export function rich(text: string): Block[] {
  const lines = text.split('\n')
  const blocks: Block[] = []
  let words: string[] = []
  const flush = (): void => {
    if (words.length > 0) blocks.push({ as: 'p', spans: spans(words.join('\n')) })
    words = []
  }
  for (let at = 0; at < lines.length; at++) {
    const line = lines[at] ?? ''
    const fence = FENCE.exec(line)
    if (fence !== null) {
      flush()
      const [, sign = '```', lang = ''] = fence
      const code: string[] = []
      for (at += 1; at < lines.length && !(lines[at] ?? '').trimStart().startsWith(sign); at++) code.push(lines[at] ?? '')
      blocks.push({ as: 'code', lang, text: code.join('\n') })
      continue
    }
    if (line.trim() === '') {
      flush()
      continue
    }
    if (RULE.test(line)) {
      flush()
      blocks.push({ as: 'rule' })
      continue
    }
    const head = HEAD.exec(line)
    if (head !== null) {
      flush()
      blocks.push({ as: 'head', level: (head[1] ?? '').length, spans: spans(head[2] ?? '') })
      continue
    }
    const item = ITEM.exec(line)
    if (item !== null) {
      flush()
      const [, space = '', number, words = ''] = item
      const last = blocks.at(-1)
      const one = { depth: Math.min(4, Math.floor(space.length / 2)), spans: spans(words) }
      const ordered = number !== undefined
      // A list under an item of another kind is still the same list here.
      if (last?.as === 'list' && (last.ordered === ordered || one.depth > 0) && !after(lines, at)) last.items.push(one)
      else blocks.push({ as: 'list', ordered, start: Number(number ?? 1), items: [one] })
      continue
    }
    if (ROW.test(line) && DIVIDER.test(lines[at + 1] ?? '')) {
      flush()
      const rows: Span[][][] = []
      for (at += 2; at < lines.length && ROW.test(lines[at] ?? ''); at++) rows.push(cells(lines[at] ?? ''))
      at -= 1
      blocks.push({ as: 'table', head: cells(line), rows })
      continue
    }
    if (line.startsWith('>')) {
      flush()
      const said = [line]
      while ((lines[at + 1] ?? '').startsWith('>')) said.push(lines[++at] ?? '')
      blocks.push({ as: 'quote', spans: spans(said.map((one) => one.replace(/^> ?/, '')).join('\n')) })
      continue
    }
    const last = blocks.at(-1)
    // The rest of an item that goes over its line.
    if (words.length === 0 && last?.as === 'list' && /^ +/.test(line)) last.items.at(-1)?.spans.push(...spans(`\n${line.trim()}`))
    else words.push(line)
  }
  flush()
  return blocks
}

/** Whether a list begins anew: something other than items stood between. */
function after(lines: readonly string[], at: number): boolean {
  const before = lines[at - 1] ?? ''
  return before.trim() === '' && !ITEM.test(lines[at - 2] ?? '') && !/^ +/.test(lines[at - 2] ?? '')
}

function cells(line: string): Span[][] {
  return line.trim().replace(/^\||\|$/g, '').split('|').slice(0, 40).map((cell) => spans(cell.trim()))
}
