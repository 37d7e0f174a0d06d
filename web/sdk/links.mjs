// In a package that is packed, links of documents lead where they are to be read: node links.mjs PACKAGE [FOLDER]. What is not in the package is where
// the code is, and so is everything for its README, which npm shows by itself.
import { existsSync, readdirSync, readFileSync, writeFileSync } from 'node:fs';
import { join, posix } from 'node:path';

const [root = '.', within = ''] = process.argv.slice(2);
const { repository } = JSON.parse(readFileSync(join(root, 'package.json'), 'utf8'));
const code = 'https://github.com/kubecast/kubecast/blob/main/';

// Where a document of the package stands in the repository, and the other way round.
const places = [
  ['dist/docs/guides/', 'docs/guides/'],
  ['dist/docs/CHANGELOG', 'CHANGELOG'],
  ['dist/docs/conformance', 'web/conformance/README'],
  ['README.md', `${repository.directory}/README.md`],
];

const files = readdirSync(join(root, within), { recursive: true })
  .map((name) => posix.join(within, name.replaceAll('\\', '/')))
  .filter((name) => name.endsWith('.md') && !name.startsWith('node_modules/'));

for (const name of files) {
  const place = places.find(([here]) => name.startsWith(here));
  if (!place) continue;
  const origin = name.replace(...place);
  const text = readFileSync(join(root, name), 'utf8');
  const moved = text.replace(/\]\((?![a-z]+:|#|\/)([^)#\s]+)(#[^)\s]*)?\)/g, (whole, path, anchor = '') => {
    if (name !== 'README.md' && existsSync(join(root, posix.dirname(name), path))) return whole; // it leads there, or has been moved before
    const there = posix.join(posix.dirname(origin), path);
    const packed = places.map(([here, repo]) => (there.startsWith(repo) ? there.replace(repo, here) : '')).find((at) => at && existsSync(join(root, at)));
    if (name === 'README.md' || !packed) return `](${code}${there}${anchor})`;
    return `](${posix.relative(posix.dirname(name), packed)}${anchor})`;
  });
  if (moved !== text) writeFileSync(join(root, name), moved);
}
