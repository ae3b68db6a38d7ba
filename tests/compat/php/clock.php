<?php

// A clock that a case moves forward: for libraries that take the time from PHP. PHP looks for time() and
// microtime() first in the namespace of the caller. The servers' clocks do not move, so the TTLs of keys
// must be longer than the test.

namespace Holdfast\Clock {
    final class Ahead
    {
        public static int $s = 0;
    }

    function advance(int $seconds): void
    {
        Ahead::$s += $seconds;
    }
}

namespace Symfony\Component\Semaphore\Store {
    function time(): int
    {
        return \time() + \Holdfast\Clock\Ahead::$s;
    }
}

namespace Symfony\Component\RateLimiter\Policy {
    function microtime(bool $asFloat): float
    {
        return \microtime(true) + \Holdfast\Clock\Ahead::$s;
    }
}

namespace Illuminate\Redis\Limiters {
    function time(): int
    {
        return \time() + \Holdfast\Clock\Ahead::$s;
    }

    function microtime(bool $asFloat): float
    {
        return \microtime(true) + \Holdfast\Clock\Ahead::$s;
    }
}
