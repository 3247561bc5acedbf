"""Chapter 22: the mistakes that are special to an exercise."""

MISTAKES = r"""
=== join-pieces
min(candidates) => max(candidates)
    ## the pair with the highest rank is joined first, and must be that with the lowest rank
=> candidates[0] ## the leftmost pair or the longest piece is joined first, whatever its rank
=> candidates[-1] ## the rightmost pair is joined first, whatever its rank
=> min(candidates, key=lambda pair: (pair[0], -pair[1]))
    ## of several pairs with the same rank the rightmost is joined, and must be the leftmost
append((rank, i)) => append((parts[i] + parts[i + 1], i))
    ## the piece that is first in the alphabet is joined first, and must be that with the lowest rank
parts[i : i + 2] = [parts[i] + parts[i + 1]] => parts[i : i + 2] = [parts[i] + parts[i + 1]]\n        return
    parts ## only one pair is joined: repeat this until no pair can be joined
=> parts[i : i + 2] = [parts[i] + parts[i + 1]]\n        if len(parts) == len(text) - 2:\n            return
    parts ## only two pairs are joined: repeat this until no pair can be joined
rank is not None => rank ## the rank 0 counts as missing: 0 is false, so compare with None (is not None)
list(text) => list(text.lstrip("▁")) ## the first character, ▁, is left out
return parts => return parts[1:] ## the first string of the result is left out
=> return [part for part in parts if part in pieces.ranks]
    ## characters that do not occur in pieces are left out: they remain separate
=> return parts[::-1] ## the strings of the result are in reverse order
if not candidates => if True ## nothing is joined: the result is the list of the characters
range(len(parts) - 1) => range(1, len(parts) - 1) ## ▁ is never joined: it is a character like the others
=> range(len(parts) - 2) ## the last pair is left out: all pairs of adjacent strings count
while True:\n => i = 0\n    while i < len(parts) - 1:\n        if parts[i] + parts[i + 1] in
    pieces.ranks:\n            parts[i : i + 2] = [parts[i] + parts[i + 1]]\n        i += 1\n    return
    parts\n    while True:\n
    ## the search passes the word only once, from the left: repeat it until no pair can be joined
if rank is not None => if rank is not None and len(parts[i] + parts[i + 1]) == 2
    ## only pieces of two characters are made: a joined string can be joined again
=== bleu
min(1.0, math.exp(1 - r / c)) => 1.0 ## the brevity penalty is left out
=> min(1.0, c / r) ## the brevity penalty is c / r instead of exp(1 - r / c)
=> c / r ## the brevity penalty is c / r, and is not limited to at most 1
sum((ours & theirs).values()) => sum(count for gram, count in ours.items() if gram in theirs)
    ## the matches are not clipped: an n-gram has at most as many matches as it occurs in the reference
=> len(ours & theirs) ## each n-gram is counted once: it may match several times if it occurs several times
=> len(ours & theirs) && sum(ours.values()) => len(ours)
    ## each n-gram is counted once: it may occur and match several times
=> sum((ours & theirs).values()) / max(1, sum(ours.values())) && += sum(ours.values()) => += 1
    ## the precisions are averaged over the lines: matches and n-grams must be summed over all lines first
c = r = 0 => c = r = 0\n    all_ours, all_theirs = ([Counter() for _ in range(4)] for _ in range(2)) &&
    matches[n - 1] += sum((ours & theirs).values()) => all_ours[n - 1] += ours\n            all_theirs[n - 1]
    += theirs\n            matches[n - 1] = sum((all_ours[n - 1] & all_theirs[n - 1]).values())
    ## the n-grams of all lines together are clipped: those of each line may match only its own reference
matches, totals = => if len(translations) > 1:\n        return sum(bleu([a], [b]) for a, b in
    zip(translations, references)) / len(references)\n    matches, totals =
    ## BLEU is the mean of the scores of the lines: matches and n-grams must be summed over all lines first
math.exp(sum(math.log(p) for p in precisions) / 4) => sum(precisions) / 4
    ## the arithmetic mean of p_1 to p_4 is used instead of the geometric mean
=> precisions[3] ## only the 4-grams count: the precisions of n = 1 to 4 must be multiplied
precisions) / 4 => precisions) ## the power 1/4 is left out: the product of p_1 to p_4 is not its fourth root
(1, 5) => (1, 4) && [0] * 4 => [0] * 3 && ) / 4 => ) / 3 ## the n-grams go only up to 3: the largest n is 4
=> (1, 2) && [0] * 4 => [0] && ) / 4 => ) ## only single words count: the n-grams must go up to n = 4
=> (1, 6) && [0] * 4 => [0] * 5 && ) / 4 => ) / 5 ## the longest n-grams have 5 words: the largest n is 4
sum(ours.values()) => sum(theirs.values()) ## the matches are divided by the number of n-grams in the
    references: that is the recall, and the n-grams of the translations are needed
- n + 1) => - n) ## the last n-gram of each line is left out
.split() => .strip() ## the n-grams are made of characters instead of words
a / b for => (a + 1) / (b + 1) for
    ## 1 is added to the matches and to the numbers of n-grams (smoothing): here nothing is added
if not all(matches):\n        return 0.0\n => if not any(matches):\n        return 0.0\n    matches, totals =
    zip(*((a, b) for a, b in zip(matches, totals) if a))\n && ) / 4) => ) / len(precisions))
    ## an n without a match is left out of the mean: BLEU is 0 then
c += len(ours_words) => c += len(translation) && r += len(theirs_words) => r += len(reference)
    ## c and r count characters: they must count words
=> c = len(ours_words) && r += len(theirs_words) => r = len(theirs_words)
    ## the brevity penalty is that of the last line: c and r count the words of all lines
100 * penalty * => 100 * penalty**0.25 *
    ## the brevity penalty is under the fourth root too: it must multiply the root
matches[n - 1] += => matches[n - 1] = && totals[n - 1] += => totals[n - 1] =
    ## the matches of the last line only are used: they must be summed over all lines
+= sum(ours.values()) => += len(ours_words)
    ## the numbers of n-grams are those of the words: a line of k words has k - n + 1 n-grams
c = r = 0 => c = r = 0\n    each = 1.0 && r += len(theirs_words) => r += len(theirs_words)\n        each *=
    min(1.0, math.exp(1 - len(theirs_words) / len(ours_words))) && min(1.0, math.exp(1 - r / c)) => each
    ## the lines' brevity penalties are multiplied: c and r are summed over all lines first
"""
