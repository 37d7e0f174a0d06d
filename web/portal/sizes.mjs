// Tells what a page of the portal costs before its own part: all that index.html loads, and what that imports, compressed.
// Fails if that is more than is promised.

import { readFileSync, readdirSync } from 'node:fs';
import { gzipSync } from 'node:zlib';

const most = 60 * 1024;
const dist = new URL('./dist/', import.meta.url);
const size = (file) => gzipSync(readFileSync(new URL(file, dist)), { level: 9 }).length;
const loads = (text, pattern) => [...text.matchAll(pattern)].map(([, file]) => file);

const first = new Set(['index.html', 'start.js', ...loads(readFileSync(new URL('index.html', dist), 'utf8'), /(?:src|href)="\.\/(assets\/[^"]+\.(?:js|css))"/g)]);
for (const file of first) {
  if (!file.endsWith('.js')) continue;
  for (const part of loads(readFileSync(new URL(file, dist), 'utf8'), /(?:from|import)\s*["']\.\/([^"']+\.js)["']/g)) first.add(`assets/${part}`);
}
const bytes = [...first].reduce((sum, file) => sum + size(file), 0);
console.log(`portal, before a page's own part: ${bytes} bytes gzipped in ${first.size} files, of ${most}`);
for (const file of readdirSync(new URL('assets/', dist)).filter((name) => /\.(js|css)$/.test(name) && !first.has(`assets/${name}`))) {
  console.log(`  later: ${file}, ${size(`assets/${file}`)} bytes`);
}
if (bytes > most) process.exitCode = 1;
