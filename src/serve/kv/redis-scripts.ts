import { createHash } from "node:crypto";
import { dayMs, keptDays, usageMembers } from "./spending.ts";

/** How long a script that was not answered may be repeated, in milliseconds. */
const repeatMs = 600_000;

/** A script, which Redis runs atomically. */
export interface RedisScript {
  readonly text: string;
  /** The hash by which Redis identifies a loaded script. */
  readonly sha: string;
}

/**
 * `Account` in Redis, whose clock counts for all instances. Keys: what is used under a name (a hash), and its open
 * requests (a sorted set: `memberOf` a request → until when it counts). A request of an instance that died lapses then, and what it
 * reserved is given back; should it end after all, the set of those that lapsed has it.
 *
 * If the clock goes back, nothing drains until the next request sets the time again; the tokens of two days are kept.
 */
const begin = `
local time = redis.call('TIME')
local now = tonumber(time[1]) * 1000 + math.floor(tonumber(time[2]) / 1000)
local today = math.floor(now / 86400000)
local perMinute, tokensPerMinute = tonumber(ARGV[1]), tonumber(ARGV[2])
local kept = redis.call('HMGET', KEYS[1], 'requests', 'tokens', 'at', 'day', 'used', 'otherDay', 'otherUsed')
for i = 1, 7 do kept[i] = tonumber(kept[i] or 0) end
local elapsed = math.max(0, now - kept[3])
local requests, tokens = 0, 0
if perMinute > 0 then requests = math.max(0, kept[1] - elapsed * perMinute / 60000) end
if tokensPerMinute > 0 then tokens = math.max(0, kept[2] - elapsed * tokensPerMinute / 60000) end
local day, used, otherDay, otherUsed = kept[4], kept[5], kept[6], kept[7]
if day ~= today then
  day, used, otherDay, otherUsed = otherDay, otherUsed, day, used
  if day ~= today then day, used = today, 0 end
end
local function keep()
  redis.call('HSET', KEYS[1], 'requests', string.format('%.17g', requests), 'tokens', string.format('%.17g', tokens),
    'at', string.format('%.0f', now), 'day', day, 'used', string.format('%.0f', used), 'otherDay', otherDay,
    'otherUsed', string.format('%.0f', otherUsed))
  redis.call('PEXPIRE', KEYS[1], 172800000)
end
`;

/**
 * The number of today's month (`monthOf`). Source: Howard Hinnant, "chrono-Compatible Low-Level Date Algorithms", `civil_from_days`.
 */
const monthOfToday = `
local shifted = today + 719468
local era = math.floor(shifted / 146097)
local doe = shifted - era * 146097
local yoe = math.floor((doe - math.floor(doe / 1460) + math.floor(doe / 36524) - math.floor(doe / 146096)) / 365)
local doy = doe - (365 * yoe + math.floor(yoe / 4) - math.floor(yoe / 100))
local month = (yoe + era * 400) * 12 + math.floor((5 * doy + 2) / 153)
`;

/** Counts nanodollars as spent on a day of a month. Keys: all but the newest of a kind are removed when a period begins. */
const spend = `
local function spend(key, cost, day, month)
  if cost == 0 then return end
  local amount = string.format('%.0f', cost)
  redis.call('HINCRBY', key, 'total', amount)
  local isNew = redis.call('HEXISTS', key, 'd' .. day) == 0
  redis.call('HINCRBY', key, 'd' .. day, amount)
  redis.call('HINCRBY', key, 'm' .. month, amount)
  if not isNew then return end
  for _, field in ipairs(redis.call('HKEYS', key)) do
    local kind, number = string.match(field, '^([dm])(%d+)$')
    number = tonumber(number)
    if (kind == 'd' and number < day - 2) or (kind == 'm' and number < month - 1) then redis.call('HDEL', key, field) end
  end
end
`;

/** Adds to what was used of a model on a day, from the argument `first` on: the model, and the values of `usageMembers`. */
const record = `
local function record(key, first)
  for i, member in ipairs({ ${usageMembers.map((member) => `'${member}'`).join(", ")} }) do
    redis.call('HINCRBY', key, ARGV[first] .. '|' .. member, ARGV[first + i])
  end
  redis.call('PEXPIRE', key, ${keptDays * dayMs})
end
`;

/** A request in the set of those that are open: its id, the tokens that it reserved, and the day (since 1970) that they count for. */
export function memberOf(id: string, reserved: number, day: number): string {
  return `${id}|${reserved}|${day}`;
}

/** Removes open requests by score, and releases what they reserved. */
const lapse = `
local lapsed = false
local function lapse(from, to)
  for _, member in ipairs(redis.call('ZRANGEBYSCORE', KEYS[2], from, to)) do
    local reserved, counted = string.match(member, '|(%d+)|(%d+)$')
    reserved, counted = tonumber(reserved or 0), tonumber(counted or 0)
    tokens = math.max(0, tokens - reserved)
    if counted == day then used = math.max(0, used - reserved)
    elseif counted == otherDay then otherUsed = math.max(0, otherUsed - reserved) end
    redis.call('ZREM', KEYS[2], member)
    redis.call('SADD', KEYS[4], member)
    redis.call('PEXPIRE', KEYS[4], 86400000)
    lapsed = true
  end
end
`;

/**
 * Arguments: the bounds (0: none) of requests and tokens a minute, of tokens a day and of open requests; the tokens of the prompt, and
 * those reserved for the answer; the request's id ("": nothing is taken); for how long it counts as open, in milliseconds; the budgets (-1:
 * none) of the day, the month and in all, and what is taken from them. Replies, as texts: whether it was taken, the `Use` after that, and
 * the month.
 */
export const takeScript: RedisScript = script(`${begin}${monthOfToday}${spend}${lapse}
local perDay, most, ttl = tonumber(ARGV[3]), tonumber(ARGV[4]), tonumber(ARGV[8])
local reserved = tonumber(ARGV[6])
local asked = tonumber(ARGV[5]) + reserved
lapse('-inf', now)
lapse(now + 2 * ttl, '+inf')
local open = redis.call('ZCARD', KEYS[2])
local cost = tonumber(ARGV[12])
local spent = redis.call('HMGET', KEYS[3], 'd' .. today, 'm' .. month, 'total')
for i = 1, 3 do spent[i] = tonumber(spent[i] or 0) end
local fits = ARGV[7] ~= '' and (perMinute == 0 or requests + 1 <= perMinute + 1e-6) and (most == 0 or open < most)
for i = 1, 3 do
  local budget = tonumber(ARGV[8 + i])
  fits = fits and (cost == 0 or budget < 0 or spent[i] + cost <= budget)
end
if asked > 0 then
  fits = fits and (tokensPerMinute == 0 or tokens + asked <= tokensPerMinute + 1e-6)
  fits = fits and (perDay == 0 or used + asked <= perDay)
end
if fits then
  requests, tokens, used, open = requests + 1, tokens + asked, used + asked, open + 1
  spend(KEYS[3], cost, today, month)
  for i = 1, 3 do spent[i] = spent[i] + cost end
end
if fits or lapsed or now < kept[3] then keep() end
if fits then
  redis.call('ZADD', KEYS[2], now + ttl, ARGV[7] .. '|' .. string.format('%.0f', reserved) .. '|' .. day)
  redis.call('PEXPIRE', KEYS[2], 86400000)
end
local function text(number) return string.format('%.17g', number) end
return { fits and '1' or '0', text(requests), text(tokens), text(used), text(now), text(open), text(month),
  text(spent[1]), text(spent[2]), text(spent[3]) }
`);

/**
 * Arguments: the bounds of requests and tokens a minute; the tokens that the request cost; those that were taken for its prompt, and those
 * reserved for its answer; its day; its member; its month; by how much its cost differs from what was taken from budgets; 1 if this
 * repeats a script that was not answered, or 2 if the one that took the request was not answered, else 0; and what `record` has, or
 * nothing. Where it has lapsed, what it reserved has been given back already. A repeated script changes nothing where the first one has
 * run: the request neither is open nor has lapsed, in a Redis that has not been restarted without its data since.
 */
export const endScript: RedisScript = script(`${begin}${spend}${record}
local counted = tonumber(ARGV[6])
local difference = tonumber(ARGV[3]) - tonumber(ARGV[4])
if redis.call('ZREM', KEYS[2], ARGV[7]) == 1 then difference = difference - tonumber(ARGV[5])
elseif redis.call('SREM', KEYS[4], ARGV[7]) == 0 and (ARGV[10] == '2' or ARGV[10] == '1' and redis.call('EXISTS', KEYS[1]) == 1)
then return 0 end
if difference ~= 0 then
  tokens = math.max(0, tokens + difference)
  if counted == day then used = math.max(0, used + difference)
  elseif counted == otherDay then otherUsed = math.max(0, otherUsed + difference) end
  keep()
end
spend(KEYS[3], tonumber(ARGV[9]), counted, tonumber(ARGV[8]))
if #ARGV > 10 then record(KEYS[5], 11) end
return 1
`);

/**
 * Keys: what was spent under a name, what was used on a day, and one that is there when this has run. Arguments: the day, its month, by how
 * much what was spent grows, and what `record` has.
 */
export const recordScript: RedisScript = script(`${spend}${record}
if not redis.call('SET', KEYS[3], 1, 'NX', 'PX', ${repeatMs}) then return 0 end
spend(KEYS[1], tonumber(ARGV[3]), tonumber(ARGV[1]), tonumber(ARGV[2]))
record(KEYS[2], 4)
return 1
`);

/** Key: open requests. Arguments: for how long they count from now on, and their members; those that are not there stay forgotten. */
export const beatScript: RedisScript = script(`
local time = redis.call('TIME')
local now = tonumber(time[1]) * 1000 + math.floor(tonumber(time[2]) / 1000)
for i = 2, #ARGV do redis.call('ZADD', KEYS[1], 'XX', now + tonumber(ARGV[1]), ARGV[i]) end
redis.call('PEXPIRE', KEYS[1], 86400000)
return 1
`);

function script(text: string): RedisScript {
  return { text, sha: createHash("sha1").update(text).digest("hex") };
}
