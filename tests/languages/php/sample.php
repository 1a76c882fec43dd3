<?php
// Counts words.
namespace Words;

use Lib\Text\Source;
use Lib\Text\Helper as Help;

const LIMIT = 10;

interface Reader
{
    public function read(int $limit): string;
}

#[Attribute]
final class Counter extends Source implements Reader
{
    private int $total = 0;

    public function __construct(private string $text)
    {
        parent::__construct();
    }

    /* Counts
       one text. */
    public function count(
        string $extra,
        int $limit = LIMIT
    ): array {
        $found = [];
        $help = '
public function notOne() {
}
';
        $add = function (string $word) use (&$found) {
            $found[$word] = ($found[$word] ?? 0) + 1;
        };
        foreach (explode(' ', $this->text . $help . $extra) as $word) {
            if ($word !== '') {
                $add($word);
            }
        }
        $this->total = count($found);
        return $found;
    }

    public function read(int $limit): string
    {
        return substr($this->text, 0, $limit);
    }
}

function most(array $found): string
{
    arsort($found);
    return array_key_first($found);
}

echo most((new Counter('a b a'))->count(''));
