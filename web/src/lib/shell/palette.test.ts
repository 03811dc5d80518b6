import { describe, expect, it } from 'vitest'

import { page, rank, type Place } from './palette'

const place = (label: string, about = '', weight = 0): Place => ({ to: `/${label}`, label, about, words: `${label} ${about}`.toLowerCase(), weight })
const all = [place('Fix the login', 'Idle · demo · shop', 1), place('Fix the tests', 'Failed · demo · shop', 4), place('Write docs', 'Working · claude · shop', 2), page('/flows', 'Flows'), page('/', 'Overview')]
const found = (text: string, most = 9): string[] => rank(all, text, most).map((one) => one.label)

describe('what is gone to', () => {
  it.each([
    ['', ['Fix the tests', 'Write docs', 'Fix the login', 'Flows', 'Overview']],
    ['fix', ['Fix the tests', 'Fix the login']],
    ['FIX log', ['Fix the login']],
    ['log fix', ['Fix the login']],
    ['claude', ['Write docs']],
    ['shop docs', ['Write docs']],
    ['fl', ['Flows']],
    ['ov', ['Overview']],
    ['nothing', []],
  ])('%j', (text, labels) => expect(found(text)).toEqual(labels))

  it('a label that begins with the text comes before a heavier one that has it inside', () =>
    expect(rank([place('The tests', '', 9), place('Tests')], 'tests', 9).map((one) => one.label)).toEqual(['Tests', 'The tests']))
  it('shows no more than asked for', () => expect(found('', 2)).toHaveLength(2))
})
