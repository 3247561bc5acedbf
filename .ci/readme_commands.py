"""Print the commands of a README's first code block, one a line, as they stand."""

import re
import sys
from pathlib import Path

text = Path(sys.argv[1]).read_text(encoding="utf-8")
block = re.search(r"^```(?:bash|sh|console)\n(.*?)^```", text, re.MULTILINE | re.DOTALL)
lines = block.group(1).splitlines() if block else []
print("\n".join(line for line in lines if line.strip() and not line.startswith("#")))
