// What a program can tell of a page that people see: what axe finds, and words that are in no language of theirs.

import { createRequire } from 'node:module';
import { readFile } from 'node:fs/promises';
import type { AxeResults } from 'axe-core';
import type { Page } from 'playwright-core';

const axe = readFile(createRequire(import.meta.url).resolve('axe-core/axe.min.js'), 'utf8');

const all = ['wcag2a', 'wcag2aa', 'wcag21a', 'wcag21aa', 'wcag22aa', 'best-practice'];

/** What axe finds on a page, by all rules of these tags or by some: the rule, the element and what is wrong with it. */
export async function violations(page: Page, rules = all): Promise<string[]> {
  // By the browser's own protocol: the page's policy lets no script in.
  await page.evaluate(await axe);
  const found = await page.evaluate(
    (runOnly): Promise<AxeResults> => (window as unknown as { axe: typeof import('axe-core') }).axe.run(document, { runOnly }),
    rules,
  );
  return found.violations.flatMap(({ id, nodes }) => nodes.map((node) => `${id}: ${node.html.slice(0, 160)} ${node.any[0]?.message ?? ''}`));
}

/** What a page that is not in English says in English, or seems to; but for a name that stands within its sentences. */
export async function englishOf(page: Page, name = ''): Promise<string[]> {
  const words = await page.evaluate(ownWords);
  return words.filter((text) => (name === '' ? text : text.replaceAll(name, '')).match(/[A-Za-z]{2,}/g)?.some((word) => !names.has(word)));
}

/** What is called so in Chinese, too. */
const names = new Set(['Pod', 'Kubecast', 'Kueue', 'Volcano', 'YAML', 'CSV', 'Ctrl', 'Enter', 'Esc', 'CPU', 'GPU', 'UID', 'JSON', 'CRD', 'kubectl', 'API', 'UTC', 'TLS', 'eyJ', 'MiB', 'GiB', 'TiB']);

/** All that is read on the page, or read out, and is not the cluster's. */
function ownWords(): string[] {
  const words: string[] = [];
  const walker = document.createTreeWalker(document.body, NodeFilter.SHOW_ELEMENT | NodeFilter.SHOW_TEXT);
  for (let node = walker.nextNode(); node; node = walker.nextNode()) {
    const element = node instanceof Element ? node : node.parentElement;
    if (!element || element.closest('[translate=no], script, style, noscript')) continue;
    if (node instanceof Text) words.push(node.data);
    else for (const name of ['aria-label', 'title', 'placeholder', 'alt']) words.push(element.getAttribute(name) ?? '');
  }
  return words.map((text) => text.trim()).filter(Boolean);
}
