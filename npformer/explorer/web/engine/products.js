// @ts-check
// The three matrix products, in which nearly all time is spent: that of the forward pass, and those of the
// two gradients. If Y = A B, then dA = dY Bᵀ and dB = Aᵀ dY. Each product is added to Y, since gradients add
// up.
//
// The functions end with three plain loops, which would suffice. Before them stand the same loops for blocks
// of two by four numbers, which are nearly three times as fast: a number that was read is used several times.
// The plain loops then compute what no block covers.

/**
 * Y (n, o) += A (n, k) B (k, o)
 * @type {(A: Float64Array, B: Float64Array, Y: Float64Array, n: number, k: number, o: number) => void}
 */
export function addProduct(A, B, Y, n, k, o) {
  addStrided(A, B, Y, n, k, o, k, 1);
}

/**
 * Y (k, o) += Aᵀ B, where A is (n, k) and B is (n, o)
 * @type {(A: Float64Array, B: Float64Array, Y: Float64Array, n: number, k: number, o: number) => void}
 */
export function addTransposedProduct(A, B, Y, n, k, o) {
  addStrided(A, B, Y, k, n, o, 1, k);
}

/**
 * Y (n, o) += A (n, k) B (k, o), where A has its entry (i, l) at i * down + l * right
 * @type {(A: Float64Array, B: Float64Array, Y: Float64Array, n: number, k: number, o: number, down: number,
 *   right: number) => void}
 */
function addStrided(A, B, Y, n, k, o, down, right) {
  const pairs = n - (n % 2), fours = k - (k % 4);
  for (let i = 0; i < pairs; i += 2) {
    for (let l = 0; l < fours; l += 4) {
      const a = i * down + l * right;
      const a0 = A[a], a1 = A[a + right], a2 = A[a + 2 * right], a3 = A[a + 3 * right];
      const c = a + down, c0 = A[c], c1 = A[c + right], c2 = A[c + 2 * right], c3 = A[c + 3 * right];
      const y = i * o, z = y + o, b = l * o;
      for (let j = 0; j < o; j++) {
        const b0 = B[b + j], b1 = B[b + o + j], b2 = B[b + 2 * o + j], b3 = B[b + 3 * o + j];
        Y[y + j] += a0 * b0 + a1 * b1 + a2 * b2 + a3 * b3;
        Y[z + j] += c0 * b0 + c1 * b1 + c2 * b2 + c3 * b3;
      }
    }
  }
  for (let i = 0; i < n; i++) {
    for (let l = i < pairs ? fours : 0; l < k; l++) {
      const a = A[i * down + l * right];
      for (let j = 0; j < o; j++) Y[i * o + j] += a * B[l * o + j];
    }
  }
}

/**
 * Y (n, o) += A (n, k) Bᵀ, where B is (o, k)
 * @type {(A: Float64Array, B: Float64Array, Y: Float64Array, n: number, k: number, o: number) => void}
 */
export function addProductWithTransposed(A, B, Y, n, k, o) {
  const pairs = n - (n % 2), fours = o - (o % 4);
  for (let i = 0; i < pairs; i += 2) {
    for (let j = 0; j < fours; j += 4) {
      const a = i * k, c = a + k, b = j * k;
      let y0 = 0, y1 = 0, y2 = 0, y3 = 0, z0 = 0, z1 = 0, z2 = 0, z3 = 0;
      for (let l = 0; l < k; l++) {
        const b0 = B[b + l], b1 = B[b + k + l], b2 = B[b + 2 * k + l], b3 = B[b + 3 * k + l];
        const ofA = A[a + l], ofC = A[c + l];
        y0 += ofA * b0, y1 += ofA * b1, y2 += ofA * b2, y3 += ofA * b3;
        z0 += ofC * b0, z1 += ofC * b1, z2 += ofC * b2, z3 += ofC * b3;
      }
      const y = i * o + j, z = y + o;
      Y[y] += y0, Y[y + 1] += y1, Y[y + 2] += y2, Y[y + 3] += y3;
      Y[z] += z0, Y[z + 1] += z1, Y[z + 2] += z2, Y[z + 3] += z3;
    }
  }
  for (let i = 0; i < n; i++) {
    for (let j = i < pairs ? fours : 0; j < o; j++) {
      let sum = 0;
      for (let l = 0; l < k; l++) sum += A[i * k + l] * B[j * k + l];
      Y[i * o + j] += sum;
    }
  }
}
