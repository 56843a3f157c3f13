-- Sends the lines of the file BENCH_LINES, "METHOD PATH TOKEN [BODY]", from BENCH_START on, and
-- writes one line of JSON at the end. After the last line it begins again.
local lines, n, thread = {}, 0, nil
sent = 0

function setup(each) thread = each end

function init(args)
   for line in io.lines(os.getenv("BENCH_LINES")) do table.insert(lines, line) end
   n = tonumber(os.getenv("BENCH_START"))
end

function request()
   local line = lines[n % #lines + 1]
   n, sent = n + 1, sent + 1
   local method, path, token, body = line:match("^(%S+) (%S+) (%S+) ?(.*)$")
   local headers = { ["Authorization"] = "Bearer " .. token }
   if body == "" then return wrk.format(method, path, headers) end
   headers["Content-Type"] = "application/json"
   return wrk.format(method, path, headers, body)
end

function done(summary, latency, requests)
   local e = summary.errors
   io.write(string.format(
      '\nBENCH {"requests":%d,"micros":%d,"p50":%d,"p99":%d,"longest":%d,"errors":%d,"sent":%d}\n',
      summary.requests, summary.duration, latency:percentile(50), latency:percentile(99),
      latency.max, e.connect + e.read + e.write + e.timeout + e.status, thread:get("sent")))
end
