"""A small decoder of Sixel graphics, for the tests that look at pictures as a terminal does."""

import re

import numpy as np

TOKEN = re.compile(r'"(\d+);(\d+);(\d+);(\d+)|#(\d+);2;(\d+);(\d+);(\d+)|#(\d+)|!(\d+)([?-~])|([$-])|([?-~])')


def decode(text):
    """Return the pixels of the only Sixel picture in a text, in percent (height, width, 3), -1 if unset."""
    [body] = re.findall(r"\033P[\d;]*q([^\033]*)\033\\", text)
    pixels, colours, colour, top, column, end = None, {}, None, 0, 0, 0
    for found in TOKEN.finditer(body):
        assert found.start() == end, f"no Sixel: {body[end : end + 20]!r}"
        end = found.end()
        groups = found.groups()
        if groups[0]:
            assert groups[:2] == ("1", "1"), "pixels are as high as wide"
            pixels = np.full((int(groups[3]), int(groups[2]), 3), -1)
        elif groups[4]:
            colours[groups[4]] = [int(part) for part in groups[5:8]]
        elif groups[8]:
            colour = colours[groups[8]]
        elif groups[11]:
            top, column = top + 6 * (groups[11] == "-"), 0
        else:
            count, letter = int(groups[9] or 1), groups[10] or groups[12]
            for bit in range(6):
                if (ord(letter) - 63) >> bit & 1:
                    assert column + count <= pixels.shape[1], "a row is too long"
                    pixels[top + bit, column : column + count] = colour
            column += count
    assert end == len(body), f"no Sixel: {body[end : end + 20]!r}"
    return pixels
