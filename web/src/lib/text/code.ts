// Colours for code of any language: what nearly all of them share.

export interface Token {
  as: '' | 'string' | 'comment' | 'number' | 'word'
  text: string
}

const WORDS = new Set(
  ('abstract as async await bool break case catch class const continue def default del do elif else enum export extends ' +
    'extern false final finally fn for from func function get go if impl implements import in instanceof int interface is ' +
    'lambda let loop match mod module mut new nil none not null or and package pass private protected pub public raise ' +
    'return self set static struct super switch then this throw throws trait true try type typeof undefined unless until ' +
    'use using var void where while with yield None True False string number end fi done esac echo select insert update').split(' '),
)
const TOKENS =
  /("(?:[^"\\\n]|\\.){0,2000}"|'(?:[^'\\\n]|\\.){0,2000}'|`(?:[^`\\]|\\.){0,2000}`)|(\/\/[^\n]*|(?<=^|\s)#(?![[{])[^\n]*|(?<=^|\s)--\s[^\n]*|\/\*[^]{0,4000}?\*\/)|(\b\d[\w.]{0,40})|([A-Za-z_]\w{0,60})/gm

/** Longer code is shown plain. */
const MOST = 40_000

export function tokens(code: string): Token[] {
  if (code.length > MOST) return [{ as: '', text: code }]
  const found: Token[] = []
  let from = 0
  for (const match of code.matchAll(TOKENS)) {
    const [all, string, comment, number, word] = match
    const as = string !== undefined ? 'string' : comment !== undefined ? 'comment' : number !== undefined ? 'number' : word !== undefined && WORDS.has(word) ? 'word' : ''
    if (as === '') continue
    if (match.index > from) found.push({ as: '', text: code.slice(from, match.index) })
    found.push({ as, text: all })
    from = match.index + all.length
  }
  if (from < code.length) found.push({ as: '', text: code.slice(from) })
  return found
}
