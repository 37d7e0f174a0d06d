// Pictures for the documentation, in few bytes: a page has few colours that matter, and a browser writes each point with three bytes.

import { deflateSync, inflateSync } from 'node:zlib';

interface Chunk {
  readonly type: string;
  readonly data: Buffer;
}

function chunksOf(png: Buffer): readonly Chunk[] {
  const chunks: Chunk[] = [];
  for (let at = 8; at < png.length; ) {
    const length = png.readUInt32BE(at);
    chunks.push({ type: png.toString('latin1', at + 4, at + 8), data: png.subarray(at + 8, at + 8 + length) });
    at += length + 12;
  }
  return chunks;
}

/** The points of a picture as a browser writes it, each as a number of its red, green and blue. */
function pointsOf(png: Buffer): { readonly width: number; readonly height: number; readonly points: Uint32Array } {
  const chunks = chunksOf(png);
  const header = chunks[0]?.data ?? Buffer.alloc(13);
  const [width, height, depth, kind, interlaced] = [header.readUInt32BE(0), header.readUInt32BE(4), header[8], header[9], header[12]];
  if (depth !== 8 || (kind !== 2 && kind !== 6) || interlaced !== 0) throw new Error('this is no picture as a browser writes it');
  const size = kind === 6 ? 4 : 3;
  const row = width * size;
  const raw = inflateSync(Buffer.concat(chunks.filter(({ type }) => type === 'IDAT').map(({ data }) => data)));
  const points = new Uint32Array(width * height);
  let before = new Uint8Array(row);
  for (let y = 0; y < height; y++) {
    const filter = raw[y * (row + 1)] ?? 0;
    const line = Uint8Array.from(raw.subarray(y * (row + 1) + 1, (y + 1) * (row + 1)));
    for (let x = 0; x < row; x++) line[x] = (line[x] ?? 0) + predicted(filter, x < size ? 0 : (line[x - size] ?? 0), before[x] ?? 0, x < size ? 0 : (before[x - size] ?? 0));
    for (let x = 0; x < width; x++) points[y * width + x] = ((line[x * size] ?? 0) << 16) | ((line[x * size + 1] ?? 0) << 8) | (line[x * size + 2] ?? 0);
    before = line;
  }
  return { width, height, points };
}

/** What a filter of PNG says of a byte, by those to its left, above it, and above that to its left. */
function predicted(filter: number, left: number, above: number, corner: number): number {
  if (filter === 1) return left;
  if (filter === 2) return above;
  if (filter === 3) return (left + above) >> 1;
  if (filter !== 4) return 0;
  const [a, b, c] = [Math.abs(above - corner), Math.abs(left - corner), Math.abs(left + above - 2 * corner)];
  return a <= b && a <= c ? left : b <= c ? above : corner;
}

/** The same picture with at most 256 colours; every other becomes the nearest of them. */
export function withFewColors(png: Buffer): Buffer {
  const { width, height, points } = pointsOf(png);
  const counts = new Map<number, number>();
  for (const point of points) counts.set(point, (counts.get(point) ?? 0) + 1);
  const palette = paletteOf([...counts].sort((a, b) => b[1] - a[1]).map(([color]) => color));
  const places = new Map(palette.map((color, place) => [color, place]));
  for (const color of counts.keys()) if (!places.has(color)) places.set(color, nearestIn(palette, color));
  const raw = Buffer.alloc((width + 1) * height);
  for (let y = 0; y < height; y++) for (let x = 0; x < width; x++) raw[y * (width + 1) + 1 + x] = places.get(points[y * width + x] ?? 0) ?? 0;
  const header = Buffer.alloc(13);
  header.writeUInt32BE(width, 0);
  header.writeUInt32BE(height, 4);
  header.set([8, 3], 8);
  const colors = Buffer.from(palette.flatMap((color) => [color >> 16, (color >> 8) & 255, color & 255]));
  return Buffer.concat([png.subarray(0, 8), chunk('IHDR', header), chunk('PLTE', colors), chunk('IDAT', deflateSync(raw, { level: 9, memLevel: 9 })), chunk('IEND', Buffer.alloc(0))]);
}

/** Of colours, the most frequent first, those that are as far from each other as is needed for 256: a small sign keeps its own. */
function paletteOf(colors: readonly number[]): readonly number[] {
  for (let apart = 1; ; apart *= 1.5) {
    const palette: number[] = [];
    for (const color of colors) if (palette.length <= 256 && !palette.some((one) => distance(one, color) < apart)) palette.push(color);
    if (palette.length <= 256) return palette;
  }
}

function distance(one: number, other: number): number {
  const [red, green, blue] = [(one >> 16) - (other >> 16), ((one >> 8) & 255) - ((other >> 8) & 255), (one & 255) - (other & 255)];
  return red * red + green * green + blue * blue;
}

function nearestIn(palette: readonly number[], color: number): number {
  let best = 0;
  palette.forEach((other, place) => {
    if (distance(other, color) < distance(palette[best] ?? 0, color)) best = place;
  });
  return best;
}

function chunk(type: string, data: Buffer): Buffer {
  const body = Buffer.concat([Buffer.from(type, 'latin1'), data]);
  const length = Buffer.alloc(4);
  length.writeUInt32BE(data.length);
  const sum = Buffer.alloc(4);
  sum.writeUInt32BE(crc(body));
  return Buffer.concat([length, body, sum]);
}

/** CRC-32; Node's own is newer than the oldest Node that runs this. */
function crc(data: Buffer): number {
  let sum = 0xffffffff;
  for (const byte of data) {
    sum ^= byte;
    for (let bit = 0; bit < 8; bit++) sum = sum & 1 ? (sum >>> 1) ^ 0xedb88320 : sum >>> 1;
  }
  return (sum ^ 0xffffffff) >>> 0;
}
