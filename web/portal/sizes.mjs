// Tells what a page of the portal costs before its own part (all that index.html loads, and what that imports, compressed), and what the parts cost
// that are asked for early. Fails if that is more than is promised.

import { readFileSync, readdirSync } from 'node:fs';
import { gzipSync } from 'node:zlib';

const most = 60 * 1024;
/** Of a page's own part. */
const mostOfPart = 40 * 1024;
/** Over HTTP/1.1 six requests at a time are under way, and two of a table's are for whose session it is and how many rows there are. */
const mostFilesOf = (page) => (/jobs|pods/.test(page) ? 4 : 9);
const dist = new URL('./dist/', import.meta.url);
const size = (file) => gzipSync(readFileSync(new URL(file, dist)), { level: 9 }).length;
const loads = (text, pattern) => [...text.matchAll(pattern)].map(([, file]) => file);

const html = readFileSync(new URL('index.html', dist), 'utf8');
const first = new Set(['index.html', 'start.js', ...loads(html, /(?:src|href)="\.\/(assets\/[^"]+\.(?:js|css))"/g)]);
for (const file of first) {
  if (!file.endsWith('.js')) continue;
  for (const part of loads(readFileSync(new URL(file, dist), 'utf8'), /(?:from|import)\s*["']\.\/([^"']+\.js)["']/g)) first.add(`assets/${part}`);
}
const sizeOf = (files) => files.reduce((sum, file) => sum + size(file), 0);
const bytes = sizeOf([...first]);
console.log(`portal, before a page's own part: ${bytes} bytes gzipped in ${first.size} files, of ${most}`);
let heavy = bytes > most;
for (const [page, files] of Object.entries(JSON.parse(/ data-parts='([^']+)'/.exec(html)[1]))) {
  const own = sizeOf(files.map((file) => `assets/${file}`));
  console.log(`  ${page}: ${own} bytes gzipped in ${files.length} files, of ${mostOfPart} in ${mostFilesOf(page)}`);
  heavy ||= own > mostOfPart || files.length > mostFilesOf(page);
}
for (const file of readdirSync(new URL('assets/', dist)).filter((name) => /\.(js|css)$/.test(name) && !first.has(`assets/${name}`))) {
  console.log(`  later: ${file}, ${size(`assets/${file}`)} bytes`);
}
if (heavy) process.exitCode = 1;
