// Which documents are pages of the site, and where they are put, each as far from the others as in the repository. The folder is hidden: tests of the documents walk the others, and would find each twice.

import { join } from 'node:path';

export const root = join(import.meta.dirname, '../..');
export const pages = join(import.meta.dirname, '.pages');
export const documents = ['README.md', 'CHANGELOG.md', 'CONTRIBUTING.md', 'SECURITY.md', 'docs', 'web/README.md', 'web/sdk/README.md', 'web/conformance/README.md', 'clients/python/README.md'];
