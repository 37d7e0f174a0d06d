import { readdirSync, readFileSync } from 'node:fs';
import { dirname, join } from 'node:path';
import { fileURLToPath } from 'node:url';
import { expect, test } from 'vitest';

const src = join(dirname(fileURLToPath(import.meta.url)), '..');
const files = readdirSync(src, { recursive: true, encoding: 'utf8' });
const sheets = files.filter((name) => name.endsWith('.css') && !name.endsWith('tokens.css'));
const styles = (name: string): string => readFileSync(join(src, name), 'utf8').replaceAll(/\/\*.*?\*\//gs, '');

interface Declaration {
  readonly property: string;
  readonly value: string;
}

/** What a style sheet declares, without its selectors. */
function declarations(css: string): Declaration[] {
  return [...css.matchAll(/(?<=[;{]\s*)([a-z-]+)\s*:\s*([^;{}]+)(?=[;}])/g)].map(([, property = '', value = '']) => ({ property, value }));
}

const color = /#[0-9a-f]{3,8}\b|\b(?:rgba?|hsla?|hwb|lab|lch|oklab|oklch|color)\(|\b(?:white|black|gr[ae]y|red|green|blue|orange|yellow|purple|silver)\b(?!-)/i;
const length = /(?<![\w.-])-?(?:\d*\.)?\d+(?:px|rem|pt)\b/gi;
/** Of no scale: nothing, and as thin as a line. */
const free = new Set(['0px', '1px', '-1px']);
const spacing = /^(?:padding|margin|gap|row-gap|column-gap)\b/;

/** Why a declaration is to refer to a token. */
function faultOf({ property, value }: Declaration): string | undefined {
  if (color.test(value.replaceAll(/var\([^)]*\)/g, ''))) return 'a colour';
  const raw = (value.match(length) ?? []).filter((one) => !free.has(one));
  if (property === 'font-size' && raw.length > 0) return 'a size of text';
  if (property === 'font' && raw.some((one) => !value.includes(`/ ${one}`))) return 'a size of text'; // after the slash is the line's height
  return spacing.test(property) && raw.length > 0 ? 'a distance' : undefined;
}

test('no colour, size of text or distance stands outside of the tokens', () => {
  expect(sheets.length).toBeGreaterThan(10);
  const found = sheets.flatMap((name) => declarations(styles(name)).flatMap((one) => (faultOf(one) ? [`${name}: ${one.property}: ${one.value} is ${faultOf(one)}`] : [])));
  expect(found).toEqual([]);
});

test('what refers to a token refers to one that there is', () => {
  const own = /(--[a-z][a-z-]*[a-z0-9-]*)['"]?\s*:/g;
  const defined = new Set(files.filter((name) => /\.(css|tsx?)$/.test(name)).flatMap((name) => [...readFileSync(join(src, name), 'utf8').matchAll(own)].map(([, name_]) => name_)));
  const missing = [...sheets, join('theme', 'tokens.css')].flatMap((name) => [...styles(name).matchAll(/var\((--[\w-]+)/g)].filter(([, token]) => !defined.has(token)).map(([, token]) => `${name}: ${token ?? ''}`));
  expect(missing).toEqual([]);
});

test.each([
  ['color', '#fff', 'a colour'],
  ['border', '1px solid rgb(0 0 0 / 20%)', 'a colour'],
  ['background', 'white', 'a colour'],
  ['font-size', '12.5px', 'a size of text'],
  ['font', '12px/18px monospace', 'a size of text'],
  ['margin-left', '-7px', 'a distance'],
  ['padding', '0 1rem', 'a distance'],
  ['gap', '2px 1px', 'a distance'],
  ['margin', '-1px auto 0', undefined],
  ['font', 'var(--text-small) / 18px var(--mono)', undefined],
  ['color', 'var(--ansi-black)', undefined],
  ['white-space', 'pre', undefined],
])('%s: %s is %s', (property, value, fault) => {
  expect(faultOf({ property, value })).toBe(fault);
});
