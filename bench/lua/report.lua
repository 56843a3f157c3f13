-- What every wrk script here shares: one JSON line at the end, read by load.py.
local threads = {}

function setup(thread)
   thread:set("id", #threads)
   table.insert(threads, thread)
   for _, each in ipairs(threads) do each:set("stride", #threads) end
end

function done(summary, latency, requests)
   local most = 0
   for _, thread in ipairs(threads) do most = math.max(most, thread:get("sent") or 0) end
   local e = summary.errors
   io.write(string.format(
      '\nBENCH {"requests":%d,"micros":%d,"mean":%f,"p50":%d,"p90":%d,"p99":%d,"longest":%d,'
         .. '"connect":%d,"read":%d,"write":%d,"timeout":%d,"status":%d,"used":%d}\n',
      summary.requests, summary.duration, latency.mean, latency:percentile(50),
      latency:percentile(90), latency:percentile(99), latency.max,
      e.connect, e.read, e.write, e.timeout, e.status, most * #threads))
end

function lines_of(variable)
   local lines = {}
   for line in io.lines(os.getenv(variable)) do table.insert(lines, line) end
   return lines
end
