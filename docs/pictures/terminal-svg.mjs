// Draws what a terminal shows as SVG. stdin: the output of `tmux capture-pane -e -p`. Arguments: columns and a title.
// Usage: tmux capture-pane -e -p | node terminal-svg.mjs 100 "lanyard top" > top.svg

const CELL_WIDTH = 8.4
const CELL_HEIGHT = 18
const MARGIN = 14
const BAR_HEIGHT = 30
const BASE = ['#484f58', '#ff7b72', '#3fb950', '#d29922', '#58a6ff', '#bc8cff', '#39c5cf', '#b1bac4']
const BRIGHT = ['#6e7681', '#ffa198', '#56d364', '#e3b341', '#79c0ff', '#d2a8ff', '#56d4dd', '#ffffff']
const INK = '#c9d1d9'
const PAPER = '#0d1117'

const columns = Number(process.argv[2] ?? 100)
const title = process.argv[3] ?? ''

/** Text for SVG, which would draw several spaces as one. */
const drawable = (text) => escaped(text).replaceAll(' ', '\u00a0')
const escaped = (text) => text.replaceAll('&', '&amp;').replaceAll('<', '&lt;').replaceAll('>', '&gt;').replaceAll('"', '&quot;')

/** A colour of the 256 that terminals have. */
function indexed(number) {
  if (number < 8) return BASE[number]
  if (number < 16) return BRIGHT[number - 8]
  if (number >= 232) return `rgb(${[0, 0, 0].map(() => 8 + (number - 232) * 10).join(',')})`
  const level = (value) => (value === 0 ? 0 : 55 + value * 40)
  const rest = number - 16
  return `rgb(${level(Math.floor(rest / 36))},${level(Math.floor(rest / 6) % 6)},${level(rest % 6)})`
}

/** The style after the numbers of an SGR sequence. */
function styled(style, numbers) {
  const next = { ...style }
  for (let at = 0; at < numbers.length; at++) {
    const code = numbers[at]
    if (code === 0) Object.assign(next, { ink: null, paper: null, bold: false, dim: false, italic: false, underlined: false, reversed: false })
    else if (code === 1) next.bold = true
    else if (code === 2) next.dim = true
    else if (code === 3) next.italic = true
    else if (code === 4) next.underlined = true
    else if (code === 7) next.reversed = true
    else if (code === 22) Object.assign(next, { bold: false, dim: false })
    else if (code === 27) next.reversed = false
    else if (code >= 30 && code <= 37) next.ink = BASE[code - 30]
    else if (code >= 90 && code <= 97) next.ink = BRIGHT[code - 90]
    else if (code === 39) next.ink = null
    else if (code >= 40 && code <= 47) next.paper = BASE[code - 40]
    else if (code === 49) next.paper = null
    else if ((code === 38 || code === 48) && numbers[at + 1] === 5) {
      next[code === 38 ? 'ink' : 'paper'] = indexed(numbers[at + 2])
      at += 2
    }
  }
  return next
}

/** Runs of text with one style each; tmux keeps a style over line ends. */
function runs(line, style) {
  const found = []
  let column = 0
  for (const part of line.split(/(\x1b\[[0-9;]*m)/)) {
    const sequence = /^\x1b\[([0-9;]*)m$/.exec(part)
    if (sequence) style = styled(style, sequence[1].split(';').map(Number))
    else if (part !== '') {
      found.push({ text: part, column, style })
      column += [...part].length
    }
  }
  return { found, style }
}

const lines = (await new Response(process.stdin).text()).trimEnd().split('\n')
const width = columns * CELL_WIDTH + 2 * MARGIN
const height = lines.length * CELL_HEIGHT + 2 * MARGIN + BAR_HEIGHT
const drawn = []
let style = styled({}, [0])
lines.forEach((line, row) => {
  const read = runs(line, style)
  style = read.style
  const top = BAR_HEIGHT + MARGIN + row * CELL_HEIGHT
  for (const { text, column, style: look } of read.found) {
    const [ink, paper] = look.reversed ? [look.paper ?? PAPER, look.ink ?? INK] : [look.ink ?? INK, look.paper]
    const [left, wide] = [MARGIN + column * CELL_WIDTH, [...text].length * CELL_WIDTH]
    if (paper) drawn.push(`<rect x="${left.toFixed(1)}" y="${top}" width="${wide.toFixed(1)}" height="${CELL_HEIGHT}" fill="${paper}"/>`)
    if (text.trim() === '') continue
    const more = [look.bold && 'font-weight="bold"', look.dim && 'opacity="0.6"', look.italic && 'font-style="italic"', look.underlined && 'text-decoration="underline"']
    drawn.push(
      `<text x="${left.toFixed(1)}" y="${top + 13}" textLength="${wide.toFixed(1)}" fill="${ink}" ${more.filter(Boolean).join(' ')}>${drawable(text)}</text>`,
    )
  }
})
console.log(`<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 ${width.toFixed(0)} ${height}" width="${width.toFixed(0)}" height="${height}" role="img">
<title>${escaped(title)}</title>
<rect width="100%" height="100%" rx="8" fill="${PAPER}"/>
<circle cx="18" cy="15" r="5" fill="#ff5f57"/><circle cx="36" cy="15" r="5" fill="#febc2e"/><circle cx="54" cy="15" r="5" fill="#28c840"/>
<text x="50%" y="20" text-anchor="middle" fill="#8b949e" font-family="sans-serif" font-size="13">${escaped(title)}</text>
<g font-family="ui-monospace, 'DejaVu Sans Mono', Menlo, Consolas, monospace" font-size="14">
${drawn.join('\n')}
</g>
</svg>`)
