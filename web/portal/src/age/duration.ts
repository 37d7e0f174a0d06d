const second = 1_000;
const minute = 60 * second;
const hour = 60 * minute;
const day = 24 * hour;

/** As kubectl writes ages: two units at most, fewer as it grows. Clocks differ, so never below zero. */
export function formatDuration(ms: number): string {
  if (!(ms > 0)) return '0s';
  if (ms < 2 * minute) return `${Math.floor(ms / second)}s`;
  if (ms < 10 * minute) return two(ms, minute, 'm', second, 's');
  if (ms < 3 * hour) return `${Math.floor(ms / minute)}m`;
  if (ms < 8 * hour) return two(ms, hour, 'h', minute, 'm');
  if (ms < 2 * day) return `${Math.floor(ms / hour)}h`;
  if (ms < 8 * day) return two(ms, day, 'd', hour, 'h');
  return `${Math.floor(ms / day)}d`;
}

function two(ms: number, large: number, largeName: string, small: number, smallName: string): string {
  const rest = Math.floor((ms % large) / small);
  return `${Math.floor(ms / large)}${largeName}${rest > 0 ? `${rest}${smallName}` : ''}`;
}
