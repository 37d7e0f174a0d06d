#!/usr/bin/env node
// npm create kubecast FOLDER: a copy of the template, which carries the folder's name. It asks nothing, and uses no network.

import { cpSync, existsSync, readdirSync, readFileSync, renameSync, writeFileSync } from 'node:fs';
import { basename, join, resolve } from 'node:path';

const usage = `usage: npm create kubecast FOLDER

makes FOLDER, which must not be there or be empty: a page in React with sign-in, a table that is live, a job's page with its log,
and tests against a gateway in memory. It asks nothing, installs nothing, and uses no network.`;

/** As npm wants it, whatever the folder is called. */
const packageName = (folder) =>
  folder
    .toLowerCase()
    .replace(/[^a-z0-9._~-]+/g, '-')
    .replace(/^[._-]+|-+$/g, '')
    .slice(0, 214) || 'kubecast-page';

function create(target) {
  if (!target || target.startsWith('-')) throw new Error(usage);
  const folder = resolve(target);
  if (existsSync(folder) && readdirSync(folder).length > 0) throw new Error(`${folder} is not empty`);
  cpSync(join(import.meta.dirname, 'template'), folder, { recursive: true });
  renameSync(join(folder, 'gitignore'), join(folder, '.gitignore')); // npm leaves one of that name out of packages
  const manifest = join(folder, 'package.json');
  writeFileSync(manifest, readFileSync(manifest, 'utf8').replace('"kubecast-page"', JSON.stringify(packageName(basename(folder)))));
  return folder;
}

if (['--help', '-h'].includes(process.argv[2])) {
  console.log(usage);
  process.exit();
}
try {
  const folder = create(process.argv[2]);
  console.log(`${folder} is there. Go on with\n  cd ${JSON.stringify(folder)}\n  npm install\n  npm test\n  npm run dev        # with a gateway at KUBECAST_GATEWAY, by default http://127.0.0.1:8080`);
} catch (error) {
  console.error(`create-kubecast: ${error.message}`);
  process.exitCode = 1;
}
