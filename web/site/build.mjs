// Builds the site into dist: `npm run site`. A link that leads nowhere fails it.

import { cpSync, rmSync } from 'node:fs';
import { join } from 'node:path';
import { build } from 'vitepress';
import { documents, pages, root } from './pages.mjs';

rmSync(pages, { recursive: true, force: true });
for (const name of documents) cpSync(join(root, name), join(pages, name), { recursive: true });
// The reference, which `npm run site` writes before.
cpSync(join(root, 'web/sdk/dist/docs'), join(pages, 'reference'), { recursive: true, filter: (name) => !name.includes('conformance') });
await build(import.meta.dirname);
