// The figures of the last 15 minutes: one sample for each `info` event. The server has totals since its
// start; rates and percentiles come from their differences.

export const kWindowMs = 15 * 60 * 1000;
export const kWaitWindowMs = 60 * 1000;  // percentiles of waits are over the last minute
const kMaxSamples = 1000;

// The q-quantile in ms of a histogram with upper bounds `bounds` and counts for each bucket, linear within
// a bucket as in Prometheus; null without any count. The last bucket has no bound: its lower bound is the
// answer.
export function quantile(bounds, counts, q) {
  const total = counts.reduce((sum, n) => sum + n, 0);
  if (total <= 0) return null;
  let rank = q * total;
  for (let i = 0; i < counts.length; i++) {
    if (rank <= counts[i] && counts[i] > 0) {
      if (i >= bounds.length) break;
      const low = i ? bounds[i - 1] : 0;
      return low + (bounds[i] - low) * rank / counts[i];
    }
    rank -= counts[i];
  }
  return bounds[bounds.length - 1];
}

// The server's counts are those up to each bound; these are the counts between the bounds.
function byBucket(counts) { return counts.map((n, i) => n - (i ? counts[i - 1] : 0)); }

export class Series {
  constructor() { this.samples = []; }

  get last() { return this.samples[this.samples.length - 1]; }

  add(info, at = performance.now()) {
    const previous = this.last;
    const sample = {
      at,
      run: info.server.run_id,
      locks: info.locks,
      waiters: info.waiters,
      memory: info.memory_bytes,
      clients: info.connected_clients,
      grants: info.grants_total,
      queued: info.queued_grants_total,
      waits: byBucket(info.wait.counts),
      grantRate: null,
      queuedRate: null,
    };
    if (previous?.run === sample.run && at > previous.at) {
      const seconds = (at - previous.at) / 1000;
      sample.grantRate = Math.max(0, sample.grants - previous.grants) / seconds;
      sample.queuedRate = Math.max(0, sample.queued - previous.queued) / seconds;
    }
    this.samples.push(sample);
    const old = this.samples.findIndex((s) => s.at >= at - kWindowMs);
    this.samples.splice(0, Math.max(old, this.samples.length - kMaxSamples));
    const waits = this.waits(sample);
    sample.p50 = quantile(info.wait.bounds_ms, waits, 0.5);
    sample.p99 = quantile(info.wait.bounds_ms, waits, 0.99);
  }

  // The waits that ended in the minute before the sample, by bucket.
  waits(sample) {
    const base = this.samples.find((s) => s.run === sample.run && s.at >= sample.at - kWaitWindowMs);
    return sample.waits.map((n, i) => n - base.waits[i]);
  }
}
