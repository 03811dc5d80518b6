// Markdown of agents as a tree of plain text: CommonMark with GFM tables, task lists, strikethrough and bare addresses.
// Nothing of it is ever markup of the page: HTML stays text, and only web and mail addresses are links.
import type { Definition, Nodes, PhrasingContent, RootContent, TableRow } from 'mdast'
import { fromMarkdown, type Options } from 'mdast-util-from-markdown'
import { gfmAutolinkLiteralFromMarkdown } from 'mdast-util-gfm-autolink-literal'
import { gfmStrikethroughFromMarkdown } from 'mdast-util-gfm-strikethrough'
import { gfmTableFromMarkdown } from 'mdast-util-gfm-table'
import { gfmTaskListItemFromMarkdown } from 'mdast-util-gfm-task-list-item'
import { gfmAutolinkLiteral } from 'micromark-extension-gfm-autolink-literal'
import { gfmStrikethrough } from 'micromark-extension-gfm-strikethrough'
import { gfmTable } from 'micromark-extension-gfm-table'
import { gfmTaskListItem } from 'micromark-extension-gfm-task-list-item'

import { clean } from './clean'

export type Span =
  | { as: 'text'; text: string }
  | { as: 'code'; text: string }
  | { as: 'bold'; spans: readonly Span[] }
  | { as: 'em'; spans: readonly Span[] }
  | { as: 'struck'; spans: readonly Span[] }
  /** `href` is null where the address is none that may be followed; then it is shown as text. */
  | { as: 'link'; address: string; href: string | null; title: string | null; spans: readonly Span[] }
  /** Never loaded: shown as a link with its description. */
  | { as: 'image'; address: string; href: string | null; title: string | null; alt: string }
  /** HTML, as text. */
  | { as: 'raw'; text: string }
  | { as: 'break' }

export interface ListItem {
  /** Null where it is no task. */
  done: boolean | null
  blocks: readonly Block[]
}

export type Align = 'left' | 'right' | 'center' | null

export type Block =
  | { as: 'p'; spans: readonly Span[] }
  | { as: 'head'; level: number; spans: readonly Span[] }
  | { as: 'quote'; blocks: readonly Block[] }
  | { as: 'code'; lang: string; text: string }
  | { as: 'list'; ordered: boolean; start: number; loose: boolean; items: readonly ListItem[] }
  | { as: 'table'; align: readonly Align[]; head: readonly (readonly Span[])[]; rows: readonly (readonly (readonly Span[])[])[] }
  /** HTML, as text. */
  | { as: 'raw'; text: string }
  | { as: 'rule' }

/** What is nested deeper is shown as it was written. */
const DEEPEST = 24
const SAFE = new Set(['http:', 'https:', 'mailto:'])

const GFM: Options = {
  extensions: [gfmTable(), gfmStrikethrough(), gfmTaskListItem(), gfmAutolinkLiteral()],
  mdastExtensions: [gfmTableFromMarkdown(), gfmStrikethroughFromMarkdown(), gfmTaskListItemFromMarkdown(), gfmAutolinkLiteralFromMarkdown()],
}

/** The address, if it may be followed. */
export function safe(address: string): string | null {
  try {
    return SAFE.has(new URL(address).protocol) ? address : null
  } catch {
    return null
  }
}

/** Signs of quotes and lists, one in the other on one line. Reading them takes the square of their number. */
const NESTED = /^(?:[ \t]{0,4}(?:>|[-+*](?=[ \t])|\d{1,9}[.)](?=[ \t]))){50}/m

/** Marks in one paragraph that may open or close something: the same holds for them. */
const MARKS = 2_000

function hopeless(text: string): boolean {
  return NESTED.test(text) || text.split(/\n[ \t]*\n/).some((part) => (part.match(/[*_~[]/g)?.length ?? 0) > MARKS)
}

/** Text that would take too long to read is shown as it was written. */
export function rich(text: string): Block[] {
  if (hopeless(text)) return [{ as: 'raw', text: clean(text) }]
  const root = fromMarkdown(text, GFM)
  return new Reader(text, definitions(root)).blocks(root.children, 0)
}

/** Addresses that are given once and used by name. The first one of a name counts. */
function definitions(root: Nodes): ReadonlyMap<string, Definition> {
  const found = new Map<string, Definition>()
  const open: Nodes[] = [root]
  for (let node = open.pop(); node !== undefined; node = open.pop()) {
    if (node.type === 'definition' && !found.has(node.identifier)) found.set(node.identifier, node)
    if ('children' in node) open.push(...(node.children as Nodes[]).toReversed())
  }
  return found
}

class Reader {
  constructor(
    private readonly text: string,
    private readonly defined: ReadonlyMap<string, Definition>,
  ) {}

  blocks(nodes: readonly RootContent[], depth: number): Block[] {
    return nodes.flatMap((node) => this.#block(node, depth))
  }

  #block(node: RootContent, depth: number): Block[] {
    if (depth > DEEPEST) return [{ as: 'raw', text: this.#source(node) }]
    switch (node.type) {
      case 'paragraph':
        return [{ as: 'p', spans: this.#spans(node.children, depth) }]
      case 'heading':
        return [{ as: 'head', level: node.depth, spans: this.#spans(node.children, depth) }]
      case 'blockquote':
        return [{ as: 'quote', blocks: this.blocks(node.children, depth + 1) }]
      case 'code':
        return [{ as: 'code', lang: clean(node.lang ?? ''), text: clean(node.value) }]
      case 'list': {
        const items = node.children.map((item): ListItem => ({ done: item.checked ?? null, blocks: this.blocks(item.children, depth + 1) }))
        const loose = (node.spread ?? false) || node.children.some((item) => item.spread)
        return [{ as: 'list', ordered: node.ordered ?? false, start: node.start ?? 1, loose, items }]
      }
      case 'table': {
        const [head, ...rows] = node.children.map((row) => this.#cells(row, depth))
        return [{ as: 'table', align: node.align ?? [], head: head ?? [], rows }]
      }
      case 'thematicBreak':
        return [{ as: 'rule' }]
      case 'html':
        return [{ as: 'raw', text: clean(node.value) }]
      default:
        return []
    }
  }

  #cells(row: TableRow, depth: number): Span[][] {
    return row.children.map((cell) => this.#spans(cell.children, depth))
  }

  #spans(nodes: readonly PhrasingContent[], depth: number): Span[] {
    return nodes.flatMap((node) => this.#span(node, depth + 1))
  }

  #span(node: PhrasingContent, depth: number): Span[] {
    if (depth > DEEPEST) return [{ as: 'text', text: this.#source(node) }]
    switch (node.type) {
      case 'text':
        return [{ as: 'text', text: clean(node.value) }]
      case 'inlineCode':
        // A line's end in code is a space.
        return [{ as: 'code', text: clean(node.value).replaceAll('\n', ' ') }]
      case 'strong':
        return [{ as: 'bold', spans: this.#spans(node.children, depth) }]
      case 'emphasis':
        return [{ as: 'em', spans: this.#spans(node.children, depth) }]
      case 'delete':
        return [{ as: 'struck', spans: this.#spans(node.children, depth) }]
      case 'link':
        return [{ as: 'link', ...where(node), spans: this.#spans(node.children, depth) }]
      case 'image':
        return [{ as: 'image', ...where(node), alt: clean(node.alt ?? '') }]
      case 'linkReference': {
        const known = this.defined.get(node.identifier)
        return known ? [{ as: 'link', ...where(known), spans: this.#spans(node.children, depth) }] : [{ as: 'text', text: this.#source(node) }]
      }
      case 'imageReference': {
        const known = this.defined.get(node.identifier)
        return known ? [{ as: 'image', ...where(known), alt: clean(node.alt ?? '') }] : [{ as: 'text', text: this.#source(node) }]
      }
      case 'break':
        return [{ as: 'break' }]
      case 'html':
        return [{ as: 'raw', text: clean(node.value) }]
      default:
        return [{ as: 'text', text: this.#source(node) }]
    }
  }

  /** A part as it was written. */
  #source(node: Nodes): string {
    return clean(this.text.slice(node.position?.start.offset ?? 0, node.position?.end.offset ?? 0))
  }
}

function where(node: { url: string; title?: string | null }): { address: string; href: string | null; title: string | null } {
  return { address: clean(node.url), href: safe(node.url), title: node.title == null ? null : clean(node.title) }
}

/** The words of spans, without their marks. */
export function plain(spans: readonly Span[]): string {
  return spans.map((span) => ('spans' in span ? plain(span.spans) : span.as === 'break' ? '\n' : span.as === 'image' ? span.alt : span.text)).join('')
}
