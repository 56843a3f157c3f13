-- Books a table, a date and a slot that nobody booked before: number n of the plan is
-- the n-th combination, threads take every stride-th number from BENCH_START on.
-- Dates change fastest, so that no evening fills up before the others.
dofile(os.getenv("BENCH_LUA") .. "/report.lua")

sent = 0
local tables, slots, dates, start, length, headers

function init(args)
   tables, slots, dates = lines_of("BENCH_TABLES"), lines_of("BENCH_SLOTS"), lines_of("BENCH_DATES")
   start, length = tonumber(os.getenv("BENCH_START")), #tables * #slots * #dates
   headers = { ["Content-Type"] = "application/json", ["Authorization"] = os.getenv("BENCH_AUTHORIZATION") }
end

function request()
   local n = start + id + stride * sent
   sent = sent + 1
   local rest = math.floor(n / #dates)
   local body = string.format(
      '{"tableId":"%s","date":"%s","slot":"%s","guests":2,'
         .. '"customer":{"name":"Salma Bennani","email":"salma.%d@example.com","phone":"+212600%06d"},'
         .. '"notes":"Une table au calme","externalRef":"B-%d","idempotencyKey":"bench-%d","notifyCustomer":false}',
      tables[rest % #tables + 1], dates[n % #dates + 1],
      slots[math.floor(rest / #tables) % #slots + 1], n, n % 1000000, n, n)
   return wrk.format("POST", os.getenv("BENCH_PATH"), headers, body)
end
