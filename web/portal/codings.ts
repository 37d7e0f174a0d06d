import { readdirSync, readFileSync, statSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { brotliCompressSync, constants, gzipSync } from 'node:zlib';
import type { Plugin } from 'vite';

/** Below so many bytes a file is left as it is: it fits into the first packet anyway. */
const smallest = 1024;

/**
 * Writes each file of the build a second and a third time, compressed as well as it can be, for the gateway to serve: that is
 * done once, here, and never while somebody waits. What a coding does not make smaller is not written.
 */
export function codings(): Plugin {
  let outDir = '';
  return {
    name: 'kubecast-codings',
    apply: 'build',
    configResolved(config) {
      outDir = join(config.root, config.build.outDir);
    },
    closeBundle() {
      for (const name of readdirSync(outDir, { recursive: true, encoding: 'utf8' })) {
        const path = join(outDir, name);
        if (!statSync(path).isFile() || statSync(path).size < smallest || /\.(br|gz)$/.test(name)) continue;
        const plain = readFileSync(path);
        const coded = {
          br: brotliCompressSync(plain, {
            params: { [constants.BROTLI_PARAM_QUALITY]: constants.BROTLI_MAX_QUALITY, [constants.BROTLI_PARAM_SIZE_HINT]: plain.length },
          }),
          gz: gzipSync(plain, { level: constants.Z_BEST_COMPRESSION }),
        };
        for (const [ending, bytes] of Object.entries(coded)) {
          if (bytes.length < plain.length) writeFileSync(`${path}.${ending}`, bytes);
        }
      }
    },
  };
}
