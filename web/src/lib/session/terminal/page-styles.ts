// The terminal makes style elements and sets style attributes, which the policy of these pages refuses. The rules of the
// former become a sheet of the document instead, and the latter are set by property: scripts of the page may do both.

const createPlainly = Document.prototype.createElement

/** An element that stands in the place of a style element. */
function standIn(to: Document): HTMLElement {
  const element = createPlainly.call(to, 'span')
  const sheet = new CSSStyleSheet()
  element.hidden = true
  to.adoptedStyleSheets = [...to.adoptedStyleSheets, sheet]
  Object.defineProperty(element, 'textContent', { set: (rules: string) => sheet.replaceSync(rules), get: () => '' })
  const remove = element.remove.bind(element)
  element.remove = () => {
    to.adoptedStyleSheets = to.adoptedStyleSheets.filter((one) => one !== sheet)
    remove()
  }
  return element
}

/** An element whose style attribute is set by property. */
function plain(element: HTMLElement): HTMLElement {
  const set = element.setAttribute.bind(element)
  element.setAttribute = (name, value) => {
    if (name === 'style') element.style.cssText = value
    else set(name, value)
  }
  return element
}

/** The document, but for the style elements that are made with it. */
export function documentFor(real: Document): Document {
  return new Proxy(real, {
    get(target, name) {
      if (name === 'createElement') return (tag: string): HTMLElement => (tag === 'style' ? standIn(target) : plain(createPlainly.call(target, tag)))
      const value: unknown = Reflect.get(target, name)
      return typeof value === 'function' ? (value.bind(target) as unknown) : value
    },
  })
}

/** The part of the terminal that makes its cells. It takes the page's own document, whatever it is given. */
interface Inside {
  _core?: { _renderService?: { _renderer?: { value?: { _rowFactory?: { _document?: Document } } } } }
}

/** Puts the terminal on the page with this document, also where it would take the page's own. */
export function openWith(given: Document, terminal: { open: (place: HTMLElement) => void }, place: HTMLElement): void {
  const page = document as { createElement?: unknown }
  page.createElement = given.createElement.bind(given)
  try {
    terminal.open(place)
  } finally {
    // What all documents have is in its place again.
    delete page.createElement
  }
  const factory = (terminal as Inside)._core?._renderService?._renderer?.value?._rowFactory
  if (factory !== undefined) factory._document = given
}
