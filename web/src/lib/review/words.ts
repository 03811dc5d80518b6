// What differs within two lines: words that go and words that come.

export interface Part {
  text: string
  changed: boolean
}

/** Beyond this many pairs of words the whole line counts as changed. */
const PAIRS = 40_000
/** With less of the shorter line in common, marks would only confuse. */
const COMMON_MIN = 0.3

const split = (line: string): string[] => line.match(/[\p{L}\p{N}_]+|\s+|[^\p{L}\p{N}_\s]/gu) ?? []

/** Both lines in parts; null where marks would not help. */
export function wordChanges(before: string, after: string): [Part[], Part[]] | null {
  const [a, b] = [split(before), split(after)]
  if (a.length === 0 || b.length === 0 || a.length * b.length > PAIRS) return null
  const width = b.length + 1
  const best = new Uint32Array((a.length + 1) * width)
  const at = (x: number, y: number): number => best[x * width + y] ?? 0
  const weight = (word: string): number => (word.trim() === '' ? 0 : word.length)
  for (let x = a.length - 1; x >= 0; x--) {
    for (let y = b.length - 1; y >= 0; y--) {
      best[x * width + y] = a[x] === b[y] ? at(x + 1, y + 1) + 1 : Math.max(at(x + 1, y), at(x, y + 1))
    }
  }
  const [left, right]: [Part[], Part[]] = [[], []]
  let [x, y, common] = [0, 0, 0]
  while (x < a.length || y < b.length) {
    const [one, other] = [a[x], b[y]]
    if (one !== undefined && one === other) {
      put(left, one, false)
      put(right, one, false)
      common += weight(one)
      x++
      y++
    } else if (other === undefined || (one !== undefined && at(x + 1, y) >= at(x, y + 1))) {
      put(left, one ?? '', true)
      x++
    } else {
      put(right, other, true)
      y++
    }
  }
  const whole = (words: readonly string[]): number => words.reduce((sum, word) => sum + weight(word), 0)
  return common <= COMMON_MIN * Math.min(whole(a), whole(b)) ? null : [left, right]
}

function put(parts: Part[], text: string, changed: boolean): void {
  const last = parts.at(-1)
  if (last?.changed === changed) last.text += text
  else parts.push({ text, changed })
}
